package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skalds-go/skalds/pkg/client"
)

// unreachable says whether the server did not answer.
func unreachable(err error) bool { return errors.Is(err, client.ErrUnreachable) }

// sentence is an error as a person reads it.
func sentence(err error) string {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) && strings.Contains(err.Error(), "\n") {
		lines := make([]string, 0, len(several.Unwrap()))
		for _, e := range several.Unwrap() {
			lines = append(lines, sentence(e))
		}
		return strings.Join(lines, "\n")
	}
	var no *client.Error
	switch {
	case errors.As(err, &no):
		return printable(answer(no), true)
	case unreachable(err):
		return err.Error() + "; is it running? 'skalds dev' starts one, --server or SKALDS_SERVER names another"
	}
	return err.Error()
}

// answer is what the server said: of each field what it held and what is allowed.
func answer(no *client.Error) string {
	if len(no.Errors) == 0 {
		if no.Detail == "" {
			return fmt.Sprintf("the server says %d %s", no.Status, no.Title)
		}
		return no.Detail
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
	return strings.Join(lines, "\n")
}
