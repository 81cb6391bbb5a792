package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// ErrUnreachable is in the chain of every error that says that the server did not answer: it may be down, or the
// address wrong.
var ErrUnreachable = errors.New("cannot reach the server")

// Error is an answer of the server that says no.
type Error struct {
	Status     int           // HTTP status
	Title      string        // what the status means
	Detail     string        // what is wrong
	Errors     []Detail      // each thing that is wrong
	Task       *task.Task    // the task that is in the way, with status 409
	RetryAfter time.Duration // what the server asks to wait before another try, with status 429 or 503; 0 = nothing
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("the server says ")
	b.WriteString(strconv.Itoa(e.Status))
	b.WriteByte(' ')
	b.WriteString(e.Title)
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	for i, d := range e.Errors {
		if i > 0 {
			b.WriteByte(';')
		} else {
			b.WriteByte(':')
		}
		b.WriteByte(' ')
		b.WriteString(d.Location)
		if d.Value != nil {
			fmt.Fprintf(&b, " (%v)", d.Value)
		}
		b.WriteByte(' ')
		b.WriteString(d.Message)
	}
	return b.String()
}

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// maxText is how much of an answer that is no problem+json an Error shows, in bytes.
const maxText = 512

// errorOf reads an answer that says no.
func errorOf(a answer) error {
	var problem struct {
		Title  string     `json:"title"`
		Detail string     `json:"detail"`
		Errors []Detail   `json:"errors"`
		Task   *task.Task `json:"task"`
	}
	e := &Error{Status: a.status}
	if strings.Contains(a.header.Get("Content-Type"), "json") && decode(a.text, &problem) == nil {
		e.Title, e.Detail, e.Errors, e.Task = problem.Title, problem.Detail, problem.Errors, problem.Task
	} else {
		e.Detail = strings.ToValidUTF8(strings.TrimSpace(string(a.text[:min(len(a.text), maxText)])), "?")
	}
	if e.Title == "" {
		e.Title = http.StatusText(a.status)
	}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// decode reads JSON; numbers stay as they were written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to) //nolint:wrapcheck // only whether there is one is looked at
}
