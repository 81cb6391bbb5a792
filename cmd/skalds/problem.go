package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skalds-go/skalds/pkg/client"
)

// unreachable reports whether the server did not answer.
func unreachable(err error) bool { return errors.Is(err, client.ErrUnreachable) }

// sentences returns an error as a person reads it, with one text for each thing that is wrong.
func sentences(err error) []string {
	if several, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		list := several.Unwrap()
		all := make([]string, 0, len(list))
		for _, e := range list {
			all = append(all, sentences(e)...)
		}
		return all
	}
	var no *client.Error
	switch {
	case errors.As(err, &no):
		return answer(no)
	case unreachable(err):
		return []string{err.Error() + "; is it running? 'skalds dev' starts one, --server or SKALDS_SERVER names another"}
	}
	return []string{err.Error()}
}

// answer returns what the server said: for each field what it held and what is allowed.
func answer(no *client.Error) []string {
	if len(no.Errors) == 0 {
		if no.Detail == "" {
			return []string{fmt.Sprintf("the server says %d %s", no.Status, no.Title)}
		}
		return []string{no.Detail}
	}
	lines := make([]string, len(no.Errors))
	for i, d := range no.Errors {
		_, field, ok := strings.Cut(d.Location, ".")
		if !ok {
			field = d.Location
		}
		switch v := d.Value.(type) {
		case nil:
			lines[i] = fmt.Sprintf("%s %s", field, d.Message)
		case string:
			lines[i] = fmt.Sprintf("%s is %q: %s", field, v, d.Message)
		default:
			lines[i] = fmt.Sprintf("%s is %v: %s", field, v, d.Message)
		}
	}
	return lines
}
