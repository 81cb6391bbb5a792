package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one variable that cannot be used as it is.
type Problem struct {
	// Variable is the environment variable at fault, as the person set it: an
	// alias or NAME_FILE if the value came from there.
	Variable string
	// Value is what the variable holds; *** for a secret, empty when not set.
	Value string
	// Want says what is allowed instead.
	Want string
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Value == "" {
		return fmt.Sprintf("%s is not set, want %s", p.Variable, p.Want)
	}
	return fmt.Sprintf("%s is %q, want %s", p.Variable, shorten(p.Value), p.Want)
}

// Error holds all problems of one configuration, in the order of its fields.
// There is at least one.
type Error struct {
	Problems []Problem
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, "the configuration cannot be used:")
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// errorOf returns the problems as an error, nil when there are none. Of each
// variable only the first is kept: what follows is mostly its consequence.
func errorOf(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := &Error{}
	for _, p := range problems {
		if !slices.ContainsFunc(e.Problems, func(kept Problem) bool { return kept.Variable == p.Variable }) {
			e.Problems = append(e.Problems, p)
		}
	}
	return e
}

// maxShown bounds how many bytes of a value a message repeats.
const maxShown = 200

func shorten(value string) string {
	if len(value) <= maxShown {
		return value
	}
	return strings.ToValidUTF8(value[:maxShown], "") + "..."
}
