package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// maxDetails is how many things that are wrong one answer names.
const maxDetails = 20

// retryAfter is what an answer 503 asks its client to wait, in seconds.
const retryAfter = 1

// conflict is a problem that shows the task which is in the way.
type conflict struct {
	huma.ErrorModel

	Task *task.Task `json:"task,omitempty" doc:"The task that is in the way, as it is now."`
}

var (
	_ huma.StatusError       = (*conflict)(nil)
	_ huma.ContentTypeFilter = (*conflict)(nil)
)

// busy is a problem that passes: it says when to try again.
type busy struct{ huma.ErrorModel }

var (
	_ huma.HeadersError      = (*busy)(nil)
	_ huma.StatusError       = (*busy)(nil)
	_ huma.ContentTypeFilter = (*busy)(nil)
)

// GetHeaders returns the Retry-After.
func (*busy) GetHeaders() http.Header {
	return http.Header{"Retry-After": {strconv.Itoa(retryAfter)}}
}

// problem is an answer that says no.
func problem(status int, detail string, details ...*huma.ErrorDetail) *huma.ErrorModel {
	return &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail, Errors: details}
}

// conflictWith is the answer 409.
func conflictWith(t *task.Task, format string, args ...any) error {
	return &conflict{ErrorModel: *problem(http.StatusConflict, fmt.Sprintf(format, args...)), Task: t}
}

// invalid is the answer 422 for one field.
func invalid(location string, value any, format string, args ...any) error {
	return problem(http.StatusUnprocessableEntity, "validation failed",
		&huma.ErrorDetail{Location: location, Value: value, Message: fmt.Sprintf(format, args...)})
}

func notFound(kind, id string) error {
	return problem(http.StatusNotFound, fmt.Sprintf("there is no %s with the id %q", kind, shorten(id)))
}

// unavailable is the answer 503.
func unavailable(detail string) error {
	return &busy{ErrorModel: *problem(http.StatusServiceUnavailable, detail)}
}

// answerLimit is how long a call may take, beside what it waits for its body and for a task's end: three calls of a
// store that does not answer.
const answerLimit = 3 * store.OpTimeout

// errTooLong ends a call at its limit.
var errTooLong = fmt.Errorf("the call took longer than %s", answerLimit)

// bounded has a call end within answerLimit, whatever it waits for.
func bounded[I, O any](call func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errTooLong)
		defer cancel()
		return call(ctx, in)
	}
}

// storeFailed turns an error of the store into an answer, and logs it. What the call was about to do is in doing.
func (s *server) storeFailed(ctx context.Context, doing string, err error) error {
	if errors.Is(err, store.ErrBadCursor) {
		return invalid("query.cursor", nil, "not a cursor of this list: give the nextCursor of the page before")
	}
	return s.failed(ctx, "the task store ("+s.StoreName+")", "; whether a write took place is not known", doing, errors.Is(err, store.ErrUnavailable), err)
}

// registryFailed does so with an error of the registry.
func (s *server) registryFailed(ctx context.Context, doing string, err error) error {
	return s.failed(ctx, "the node registry (redis)", "", doing, errors.Is(err, registry.ErrUnavailable), err)
}

// failed makes the answer. down says that the part does not answer, which also one says that has not by the end of the
// call's time.
func (s *server) failed(ctx context.Context, part, caveat, doing string, down bool, err error) error {
	late := errors.Is(context.Cause(ctx), errTooLong)
	switch {
	case ctx.Err() != nil && !late: // the client is gone, or the process ends; nobody is to blame
		return unavailable("the request was given up while it was handled")
	case late || down:
		s.Log.WarnContext(ctx, "api: no answer", "of", part, "doing", doing, "error", err)
		return unavailable(part + " does not answer (" + doing + ")" + caveat + "; try again")
	}
	s.Log.ErrorContext(ctx, "api: request failed", "doing", doing, "error", err)
	return problem(http.StatusInternalServerError, "internal error ("+doing+"); the controller's log says more")
}

// writeProblemf answers outside of huma: in the middleware and for unknown routes.
func writeProblemf(w http.ResponseWriter, status int, format string, args ...any) {
	body, err := json.Marshal(problem(status, fmt.Sprintf(format, args...)))
	if err != nil { // cannot be: the model holds only strings and numbers
		body = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// statusOf is the HTTP status of an answer made here.
func statusOf(err error) int {
	if status, ok := errors.AsType[huma.StatusError](err); ok {
		return status.GetStatus()
	}
	return http.StatusInternalServerError
}

// shorten cuts what is echoed in an error to at most 128 bytes.
func shorten(s string) string {
	const limit = 128
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
