package task

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what a task may hold.
const (
	MaxIDBytes    = 256
	MaxClassBytes = 256
	MaxKeyBytes   = 256       // of the keys, the pool and the namespace
	MaxSlots      = 1_000_000 // also of concurrencyLimit
)

// Limits of what a client may submit beyond those.
const (
	MaxTextBytes        = 1024 // of name and source
	MaxDescriptionBytes = 16 << 10
	MaxCount            = 1_000_000             // of maxAttempts and maxCrashes
	MaxBackoffMs        = 30 * 24 * 3600 * 1000 // of backoff.baseMs and backoff.maxMs
	MaxBackoffFactor    = 100
)

// FieldError reports why one field of a task is not accepted.
type FieldError struct {
	Field  string // its path in the document, such as className or backoff.factor
	Value  any    // what it holds; nil where that says nothing
	Reason string // what it must be
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// fieldErrors collects what is wrong with a task.
type fieldErrors []FieldError

func (l *fieldErrors) addf(field string, value any, format string, args ...any) {
	*l = append(*l, FieldError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)})
}

// size checks the length of a text and reports whether it fits.
func (l *fieldErrors) size(field, value string, limit int) bool {
	if len(value) > limit {
		l.addf(field, value, "has %d bytes; at most %d are allowed", len(value), limit)
		return false
	}
	return true
}

// printable checks for control characters.
func (l *fieldErrors) printable(field, value string) {
	if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(value[i:])
		l.addf(field, value, "holds the control character %U at byte %d", r, i)
	}
}

// count checks a whole number.
func (l *fieldErrors) count(field string, value int, zero string) {
	if value < 0 || value > MaxCount {
		l.addf(field, value, "must be a whole number from 0 (%s) to %d", zero, MaxCount)
	}
}

// millis checks a time or a duration.
func (l *fieldErrors) millis(field string, value int64, what string) {
	if value < 0 {
		l.addf(field, value, "must be a whole number of %s or more", what)
	}
}

type namedText struct{ name, value string }

// keys are the short texts that tasks share.
func (t *Task) keys() [5]namedText {
	return [...]namedText{
		{"namespace", t.Namespace}, {"stickyKey", t.StickyKey}, {"antiAffinityKey", t.AntiAffinityKey}, {"concurrencyKey", t.ConcurrencyKey}, {"pool", t.Pool},
	}
}

// unfit finds what keeps the task from being dispatched, whoever wrote it. An empty id is not its concern.
func (t *Task) unfit() (l fieldErrors) {
	l.size("id", t.ID, MaxIDBytes)
	if t.ClassName == "" {
		l.addf("className", nil, "is required and must not be empty: it names the class of work")
	}
	l.size("className", t.ClassName, MaxClassBytes)
	for _, k := range t.keys() {
		l.size(k.name, k.value, MaxKeyBytes)
	}
	l.count("slots", t.Slots, "one")
	l.count("concurrencyLimit", t.ConcurrencyLimit, "one")
	if t.Selector != "" || len(t.Labels) > 0 {
		t.unfitSelector(&l)
	}
	return l
}

func (t *Task) unfitSelector(l *fieldErrors) {
	_, err := t.NodeSelector()
	if syntax, ok := errors.AsType[*SelectorError](err); ok {
		l.addf("selector", t.Selector, "does not parse at byte %d: %s", syntax.At, syntax.Msg)
	} else if err != nil {
		l.addf("labels", nil, "%v", err)
	}
}

// Unfit returns why a document can never be dispatched, whoever wrote it. It is empty for one that can.
func (t *Task) Unfit() string {
	if t.ID == "" {
		return "id is empty"
	}
	if l := t.unfit(); len(l) > 0 {
		return l[0].Error()
	}
	return ""
}

// CheckSubmit returns what is wrong with a task that a client submits; nil if nothing is. It is the one place for these
// rules, but for those of JSON, which the store checks. A task without an id is fine: it gets one.
func (t *Task) CheckSubmit() []FieldError {
	l := t.unfit()
	if strings.IndexByte(t.ID, '/') >= 0 || t.ID == "." || t.ID == ".." {
		l.addf("id", t.ID, "must hold no slash and not be '.' or '..': an address of the API could not name it")
	}
	l.size("idempotencyKey", t.IdempotencyKey, MaxKeyBytes)
	for _, k := range [...]namedText{{"id", t.ID}, {"className", t.ClassName}, {"idempotencyKey", t.IdempotencyKey}} {
		l.printable(k.name, k.value)
	}
	for _, k := range t.keys() {
		l.printable(k.name, k.value)
	}
	for _, k := range [...]namedText{{"name", t.Name}, {"source", t.Source}, {"description", t.Description}} {
		limit := MaxTextBytes
		if k.name == "description" {
			limit = MaxDescriptionBytes
		}
		if l.size(k.name, k.value, limit) && strings.IndexByte(k.value, 0) >= 0 {
			l.addf(k.name, k.value, "holds a NUL character")
		}
	}
	if t.Priority < MinPriority || t.Priority > MaxPriority {
		l.addf("priority", t.Priority, "must be a whole number from %d to %d", MinPriority, MaxPriority)
	}
	if t.Mode != ModePassive && t.Mode != ModeActive {
		l.addf("mode", t.Mode, "must be %s or %s", ModePassive, ModeActive)
	}
	if len(t.Dependencies) > 0 {
		l.addf("dependencies", nil, "must be an empty list: this version does not order tasks by dependencies")
	}
	l.millis("deadlineDateTime", t.DeadlineDateTime, "epoch milliseconds, 0 (none)")
	l.millis("notBefore", t.NotBefore, "epoch milliseconds, 0 (at once)")
	l.millis("timeoutMs", t.TimeoutMs, "milliseconds, 0 (none)")
	if t.MaxAttempts != nil {
		l.count("maxAttempts", *t.MaxAttempts, "without end")
	}
	if t.MaxCrashes != nil {
		l.count("maxCrashes", *t.MaxCrashes, "without end")
	}
	if b := t.Backoff; b != nil {
		for _, wait := range []struct {
			name  string
			value int64
		}{{"backoff.baseMs", b.BaseMs}, {"backoff.maxMs", b.MaxMs}} {
			if wait.value < 0 || wait.value > MaxBackoffMs {
				l.addf(wait.name, wait.value, "must be a whole number of milliseconds from 0 to %d", MaxBackoffMs)
			}
		}
		if !(b.Factor >= 1 && b.Factor <= MaxBackoffFactor) { // also for a NaN
			l.addf("backoff.factor", b.Factor, "must be a number from 1 to %d", MaxBackoffFactor)
		}
	}
	return l
}
