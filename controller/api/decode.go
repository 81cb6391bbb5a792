package api

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/rawjson"
	"github.com/skalds-go/skalds/pkg/task"
)

// Limits on the text fields of a submit, in bytes.
const (
	maxText        = 1024
	maxDescription = 16 << 10
)

// refusal is why a submit is not accepted: a status, and the fields that are wrong.
type refusal struct {
	status  int
	details []*huma.ErrorDetail
}

// addf notes a field that is wrong. The first status stays, but for a 413, which says more than a 422.
func (r *refusal) addf(status int, location string, value any, format string, args ...any) {
	if r.status == 0 || status == http.StatusRequestEntityTooLarge {
		r.status = status
	}
	if len(r.details) < maxDetails {
		r.details = append(r.details, &huma.ErrorDetail{Location: location, Value: value, Message: fmt.Sprintf(format, args...)})
	}
}

// err is the answer for a single submit; nil if nothing is wrong.
func (r *refusal) err() error {
	if r.status == 0 {
		return nil
	}
	detail := "validation failed"
	if r.status == http.StatusRequestEntityTooLarge {
		detail = r.text()
	}
	return problem(r.status, detail, r.details...)
}

// text is all of it in one line, for an item of a batch.
func (r *refusal) text() string {
	var b strings.Builder
	for i, d := range r.details {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(d.Location)
		b.WriteString(": ")
		b.WriteString(d.Message)
	}
	return b.String()
}

// taskDecoder reads tasks as they are submitted. It is the one place for what a submit may hold.
type taskDecoder struct {
	maxAttachments int    // bytes, without white space
	location       string // of the task in the request
	class          string // the last class name: most batches hold one
	task           task.Task
	refusal        refusal
}

// field reads the value of one member into the task.
type field func(d *taskDecoder, name string, value []byte)

// fields are the members a submit may have.
var fields = func() map[string]field {
	all := maps.Clone(taskFields)
	maps.Copy(all, placementFields)
	return all
}()

// taskFields are those that say what a task is. Those of the Python Skalds' clients are among them.
var taskFields = map[string]field{
	"className":      (*taskDecoder).className,
	"id":             func(d *taskDecoder, name string, value []byte) { d.key(&d.task.ID, name, value) },
	"idempotencyKey": func(d *taskDecoder, name string, value []byte) { d.key(&d.task.IdempotencyKey, name, value) },
	"attachments":    (*taskDecoder).attachments,
	"priority":       (*taskDecoder).priority,
	"name":           func(d *taskDecoder, name string, value []byte) { d.text(&d.task.Name, name, value, maxText) },
	"description": func(d *taskDecoder, name string, value []byte) {
		d.text(&d.task.Description, name, value, maxDescription)
	},
	"source":       func(d *taskDecoder, name string, value []byte) { d.text(&d.task.Source, name, value, maxText) },
	"mode":         (*taskDecoder).mode,
	"isPersistent": (*taskDecoder).isPersistent,
	"deadlineDateTime": func(d *taskDecoder, name string, value []byte) {
		d.millis(&d.task.DeadlineDateTime, name, value, "epoch milliseconds, 0 (none) or more")
	},
	"notBefore": func(d *taskDecoder, name string, value []byte) {
		d.millis(&d.task.NotBefore, name, value, "epoch milliseconds, 0 (at once) or more")
	},
	"timeoutMs": func(d *taskDecoder, name string, value []byte) {
		d.millis(&d.task.TimeoutMs, name, value, "milliseconds, 0 (none) or more")
	},
	"maxAttempts":  func(d *taskDecoder, name string, value []byte) { d.count(&d.task.MaxAttempts, name, value) },
	"maxCrashes":   func(d *taskDecoder, name string, value []byte) { d.count(&d.task.MaxCrashes, name, value) },
	"backoff":      (*taskDecoder).backoff,
	"dependencies": (*taskDecoder).dependencies,
}

// decode reads one task from valid JSON in UTF-8. What it gives shares no memory with the text. A member that is null is as one that
// is absent. If anything is wrong, the refusal says so, and the task means nothing.
func (d *taskDecoder) decode(text []byte, location string) (task.Task, refusal) {
	d.location, d.refusal = location, refusal{}
	d.task = task.Task{Mode: task.ModePassive, IsPersistent: true, LifecycleStatus: task.Created}
	if text[0] != '{' {
		d.refusal.addf(http.StatusUnprocessableEntity, location, echo(text), "must be an object")
		return task.Task{}, d.refusal
	}
	rawjson.Members(text, func(key, value []byte) bool {
		read, ok := fields[string(key)]
		switch {
		case !ok:
			d.wrongf(shorten(string(key)), value, "unknown field")
		case string(value) != "null":
			read(d, string(key), value)
		}
		return len(d.refusal.details) < maxDetails
	})
	if d.task.ClassName == "" && d.refusal.status == 0 {
		d.refusal.addf(http.StatusUnprocessableEntity, location+".className", nil, "is required: it names the class of work")
	}
	return d.task, d.refusal
}

// wrongf notes that a field cannot be accepted.
func (d *taskDecoder) wrongf(name string, value []byte, format string, args ...any) {
	d.refusal.addf(http.StatusUnprocessableEntity, d.location+"."+name, echo(value), format, args...)
}

// str decodes a string; it reports false, and notes it, for any other value.
func (d *taskDecoder) str(name string, value []byte) ([]byte, bool) {
	if value[0] != '"' {
		d.wrongf(name, value, "must be a string")
		return nil, false
	}
	return rawjson.Unquote(value), true
}

func (d *taskDecoder) text(to *string, name string, value []byte, limit int) {
	s, ok := d.str(name, value)
	switch {
	case !ok:
	case len(s) > limit:
		d.wrongf(name, value, "has %d bytes; at most %d are allowed", len(s), limit)
	case bytes.IndexByte(s, 0) >= 0:
		d.wrongf(name, value, "holds a NUL character")
	default:
		*to = string(s)
	}
}

func (d *taskDecoder) className(name string, value []byte) {
	s, ok := d.str(name, value)
	switch {
	case !ok:
	case string(s) == d.class && d.class != "":
		d.task.ClassName = d.class
	case d.short(name, value, s, task.MaxClassBytes):
		d.class = string(s)
		d.task.ClassName = d.class
	}
}

// key reads an id or an idempotency key. An empty one is as an absent one.
func (d *taskDecoder) key(to *string, name string, value []byte) {
	s, ok := d.str(name, value)
	switch {
	case !ok || len(s) == 0 || !d.short(name, value, s, task.MaxKeyBytes):
	case name == "id" && bytes.IndexByte(s, '/') >= 0:
		d.wrongf(name, value, "holds a slash, which an address of the API could not name")
	case name == "id" && (string(s) == "." || string(s) == ".."):
		d.wrongf(name, value, "must not be '.' or '..', which an address of the API could not name")
	default:
		*to = string(s)
	}
}

// short says whether s has 1 to limit bytes and no control characters, and notes it otherwise.
func (d *taskDecoder) short(name string, value, s []byte, limit int) bool {
	if len(s) == 0 {
		d.wrongf(name, value, "must not be empty")
		return false
	}
	if len(s) > limit {
		d.wrongf(name, value, "has %d bytes; at most %d are allowed", len(s), limit)
		return false
	}
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRune(s[at:])
		if unicode.IsControl(r) {
			d.wrongf(name, value, "holds the control character %U at byte %d", r, at)
			return false
		}
		at += size
	}
	return true
}

func (d *taskDecoder) attachments(name string, value []byte) {
	compacted, err := rawjson.Compact(value)
	switch {
	case err != nil:
		d.wrongf(name, nil, "%v", err)
	case len(compacted) > d.maxAttachments:
		d.refusal.addf(http.StatusRequestEntityTooLarge, d.location+"."+name, nil,
			"has %d bytes without white space; at most %d are allowed (TASK_MAX_BYTES)", len(compacted), d.maxAttachments)
	default:
		d.task.Attachments = compacted
	}
}

func (d *taskDecoder) priority(name string, value []byte) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < task.MinPriority || n > task.MaxPriority {
		d.wrongf(name, value, "must be a whole number from %d to %d", task.MinPriority, task.MaxPriority)
		return
	}
	d.task.Priority = n
}

func (d *taskDecoder) mode(name string, value []byte) {
	for _, m := range []task.Mode{task.ModePassive, task.ModeActive} {
		if value[0] == '"' && strings.EqualFold(string(rawjson.Unquote(value)), string(m)) {
			d.task.Mode = m
			return
		}
	}
	d.wrongf(name, value, "must be %s or %s", task.ModePassive, task.ModeActive)
}

func (d *taskDecoder) isPersistent(name string, value []byte) {
	if value[0] != 't' && value[0] != 'f' {
		d.wrongf(name, value, "must be true or false")
		return
	}
	d.task.IsPersistent = value[0] == 't'
}

// millis reads a whole number of milliseconds, 0 or more.
func (d *taskDecoder) millis(to *int64, name string, value []byte, what string) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 {
		d.wrongf(name, value, "must be a whole number of %s", what)
		return
	}
	*to = n
}

// maxCount bounds maxAttempts and maxCrashes.
const maxCount = 1_000_000

func (d *taskDecoder) count(to **int, name string, value []byte) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > maxCount {
		d.wrongf(name, value, "must be a whole number from 0 (without end) to %d", maxCount)
		return
	}
	*to = &n
}

// Limits of a backoff.
const (
	maxBackoffMs = 30 * 24 * 3600 * 1000
	maxFactor    = 100
)

// backoff reads the waits between attempts. A member that is absent is that of the default policy.
func (d *taskDecoder) backoff(name string, value []byte) {
	if value[0] != '{' {
		d.wrongf(name, value, `must be an object: {"baseMs":1000,"factor":2,"maxMs":300000}`)
		return
	}
	b := task.DefaultPolicy().Backoff
	ms := func(to *int64, key string, text []byte) {
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n < 0 || n > maxBackoffMs {
			d.wrongf(name+"."+key, text, "must be a whole number of milliseconds from 0 to %d", maxBackoffMs)
			return
		}
		*to = n
	}
	rawjson.Members(value, func(key, text []byte) bool {
		switch string(key) {
		case "baseMs":
			ms(&b.BaseMs, "baseMs", text)
		case "maxMs":
			ms(&b.MaxMs, "maxMs", text)
		case "factor":
			n, err := strconv.ParseFloat(string(text), 64)
			if err != nil || n < 1 || n > maxFactor {
				d.wrongf(name+".factor", text, "must be a number from 1 to %d", maxFactor)
				break
			}
			b.Factor = n
		default:
			d.wrongf(name+"."+shorten(string(key)), text, "unknown field")
		}
		return len(d.refusal.details) < maxDetails
	})
	d.task.Backoff = &b
}

func (d *taskDecoder) dependencies(name string, value []byte) {
	if value[0] == '[' {
		w := rawjson.Reader{Text: value}
		if !w.Open() {
			return
		}
	}
	d.wrongf(name, value, "must be an empty list: this version does not order tasks by dependencies")
}

// echo is what an error shows of a value: the value itself, or the beginning of its text if it is long or an object; nil for none.
func echo(value []byte) any {
	switch {
	case len(value) == 0:
		return nil
	case value[0] == '"':
		return shorten(string(rawjson.Unquote(value)))
	case string(value) == "true" || string(value) == "false":
		return value[0] == 't'
	case rawjson.IsNumber(value[0]) && len(value) <= 15:
		if n, err := strconv.ParseFloat(string(value), 64); err == nil {
			return n
		}
	}
	return shorten(string(value))
}

// splitBatch gives the text of each task of a batch, 1 to limit of them, or says what is wrong with the batch as a whole.
func splitBatch(text []byte, limit int) ([][]byte, error) {
	if err := checkJSON(text); err != nil {
		return nil, badJSON(err)
	}
	var r refusal
	text = bytes.TrimSpace(text)
	if text[0] != '{' {
		r.addf(http.StatusUnprocessableEntity, "body", echo(text), `must be an object: {"tasks":[...]}`)
		return nil, r.err()
	}
	var tasks []byte
	rawjson.Members(text, func(key, value []byte) bool {
		if string(key) == "tasks" {
			tasks = value
		} else {
			r.addf(http.StatusUnprocessableEntity, "body."+shorten(string(key)), echo(value), "unknown field")
		}
		return len(r.details) < maxDetails
	})
	var list [][]byte
	if len(tasks) > 0 && tasks[0] == '[' {
		rawjson.Elements(tasks, func(value []byte) bool {
			list = append(list, value)
			return len(list) <= limit
		})
	}
	if r.status == 0 && (len(list) == 0 || len(list) > limit) {
		r.addf(http.StatusUnprocessableEntity, "body.tasks", nil, "must be a list of 1 to %d tasks", limit)
	}
	return list, r.err()
}

func badJSON(err error) error { return problem(http.StatusBadRequest, "the body: "+err.Error()) }

// checkJSON reports why body is not one JSON value in UTF-8.
func checkJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty; send a JSON object")
	}
	return rawjson.Check(body)
}
