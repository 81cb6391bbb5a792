package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/rawjson"
	"github.com/skalds-go/skalds/pkg/task"
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

// taskDecoder reads tasks as they are submitted. What a task may hold is for task.CheckSubmit to say.
type taskDecoder struct {
	maxAttachments int    // bytes, without white space
	location       string // of the task in the request
	class          string // the last class name: most batches hold one
	task           task.Task
	refusal        refusal
}

// fields are the members a submit may have, with where each goes: a *string, *int, *int64, *float64 or *bool, or what
// decodes it.
var fields = map[string]func(*taskDecoder) any{
	"className":        func(*taskDecoder) any { return (*taskDecoder).className },
	"id":               func(d *taskDecoder) any { return &d.task.ID },
	"idempotencyKey":   func(d *taskDecoder) any { return &d.task.IdempotencyKey },
	"attachments":      func(*taskDecoder) any { return (*taskDecoder).attachments },
	"priority":         func(d *taskDecoder) any { return &d.task.Priority },
	"name":             func(d *taskDecoder) any { return &d.task.Name },
	"description":      func(d *taskDecoder) any { return &d.task.Description },
	"source":           func(d *taskDecoder) any { return &d.task.Source },
	"mode":             func(*taskDecoder) any { return (*taskDecoder).mode },
	"isPersistent":     func(d *taskDecoder) any { return &d.task.IsPersistent },
	"deadlineDateTime": func(d *taskDecoder) any { return &d.task.DeadlineDateTime },
	"notBefore":        func(d *taskDecoder) any { return &d.task.NotBefore },
	"timeoutMs":        func(d *taskDecoder) any { return &d.task.TimeoutMs },
	"maxAttempts":      func(d *taskDecoder) any { d.task.MaxAttempts = new(int); return d.task.MaxAttempts },
	"maxCrashes":       func(d *taskDecoder) any { d.task.MaxCrashes = new(int); return d.task.MaxCrashes },
	"backoff":          func(*taskDecoder) any { return (*taskDecoder).backoff },
	"dependencies":     func(*taskDecoder) any { return (*taskDecoder).dependencies },
	"labels":           func(*taskDecoder) any { return (*taskDecoder).labels },
	"selector":         func(*taskDecoder) any { return (*taskDecoder).selector },
	"strategy":         func(*taskDecoder) any { return (*taskDecoder).strategy },
	"namespace":        func(d *taskDecoder) any { return &d.task.Namespace },
	"stickyKey":        func(d *taskDecoder) any { return &d.task.StickyKey },
	"antiAffinityKey":  func(d *taskDecoder) any { return &d.task.AntiAffinityKey },
	"concurrencyKey":   func(d *taskDecoder) any { return &d.task.ConcurrencyKey },
	"pool":             func(d *taskDecoder) any { return &d.task.Pool },
	"slots":            func(d *taskDecoder) any { return &d.task.Slots },
	"concurrencyLimit": func(d *taskDecoder) any { return &d.task.ConcurrencyLimit },
}

// decode reads one task from valid JSON in UTF-8. The task shares no memory with the text. A member that is null counts
// as absent. If anything is wrong, the refusal says so, and the task means nothing.
func (d *taskDecoder) decode(text []byte, location string) (task.Task, refusal) {
	d.location, d.refusal = location, refusal{}
	d.task = task.Task{Mode: task.ModePassive, IsPersistent: true, LifecycleStatus: task.Created}
	if text[0] != '{' {
		d.refusal.addf(http.StatusUnprocessableEntity, location, echo(text), "must be an object")
		return task.Task{}, d.refusal
	}
	rawjson.Members(text, func(key, value []byte) bool {
		to, ok := fields[string(key)]
		switch {
		case !ok:
			d.wrongf(shorten(string(key)), value, "unknown field")
		case string(value) != "null":
			d.read(to(d), string(key), value)
		}
		return len(d.refusal.details) < maxDetails
	})
	if wrong := d.task.CheckSubmit(); len(wrong) > 0 {
		d.broken(wrong, text)
	}
	return d.task, d.refusal
}

// read decodes a value. A number that is none becomes one that no rule accepts, so that the rule says what must be
// there.
func (d *taskDecoder) read(to any, name string, value []byte) {
	switch to := to.(type) {
	case func(*taskDecoder, string, []byte):
		to(d, name, value)
	case *string:
		if s, ok := d.str(name, value); ok {
			*to = string(s)
		}
	case *bool:
		if *to = value[0] == 't'; value[0] != 't' && value[0] != 'f' {
			d.wrongf(name, value, "must be true or false")
		}
	case *int:
		n, err := strconv.Atoi(string(value))
		if *to = n; err != nil {
			*to = math.MinInt
		}
	case *int64:
		n, err := strconv.ParseInt(string(value), 10, 64)
		if *to = n; err != nil {
			*to = math.MinInt64
		}
	case *float64:
		n, err := strconv.ParseFloat(string(value), 64)
		if *to = n; err != nil {
			*to = math.NaN()
		}
	}
}

// broken puts the rules that the task breaks in front of what did not decode, but for fields that did not.
func (d *taskDecoder) broken(wrong []task.FieldError, text []byte) {
	all := refusal{}
	for i := range wrong {
		field := wrong[i].Field
		if field == "selector" && lookup(text, field) == nil {
			field = "labels" // where it stands as a string
		}
		location := d.location + "." + field
		if !slices.ContainsFunc(d.refusal.details, func(known *huma.ErrorDetail) bool { return known.Location == location }) {
			all.addf(http.StatusUnprocessableEntity, location, echo(lookup(text, field)), "%s", wrong[i].Reason)
		}
	}
	for _, known := range d.refusal.details {
		all.addf(d.refusal.status, known.Location, known.Value, "%s", known.Message)
	}
	d.refusal = all
}

// lookup returns the text of the field of that path; nil if there is none.
func lookup(object []byte, path string) (found []byte) {
	name, rest, deeper := strings.Cut(path, ".")
	rawjson.Members(object, func(key, value []byte) bool {
		if string(key) == name {
			found = value
		}
		return true
	})
	if deeper && len(found) > 0 && found[0] == '{' {
		return lookup(found, rest)
	}
	return found
}

// wrongf notes that a field cannot be accepted.
func (d *taskDecoder) wrongf(name string, value []byte, format string, args ...any) {
	d.refusal.addf(http.StatusUnprocessableEntity, d.location+"."+name, echo(value), format, args...)
}

// str decodes a string. It reports false, and notes it, for any other value.
func (d *taskDecoder) str(name string, value []byte) ([]byte, bool) {
	if value[0] != '"' {
		d.wrongf(name, value, "must be a string")
		return nil, false
	}
	return rawjson.Unquote(value), true
}

func (d *taskDecoder) className(name string, value []byte) {
	if s, ok := d.str(name, value); ok {
		if string(s) != d.class {
			d.class = string(s)
		}
		d.task.ClassName = d.class
	}
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

// mode reads a mode without regard to case.
func (d *taskDecoder) mode(name string, value []byte) {
	s, ok := d.str(name, value)
	if !ok {
		return
	}
	d.task.Mode = task.Mode(s)
	for _, m := range []task.Mode{task.ModePassive, task.ModeActive} {
		if strings.EqualFold(string(s), string(m)) {
			d.task.Mode = m
		}
	}
}

// backoff reads the waits between attempts. A member that is absent is that of the default policy.
func (d *taskDecoder) backoff(name string, value []byte) {
	if value[0] != '{' {
		d.wrongf(name, value, `must be an object: {"baseMs":1000,"factor":2,"maxMs":300000}`)
		return
	}
	b := task.DefaultPolicy().Backoff
	members := map[string]any{"baseMs": &b.BaseMs, "factor": &b.Factor, "maxMs": &b.MaxMs}
	rawjson.Members(value, func(key, text []byte) bool {
		if to, ok := members[string(key)]; ok {
			d.read(to, name+"."+string(key), text)
		} else {
			d.wrongf(name+"."+shorten(string(key)), text, "unknown field")
		}
		return len(d.refusal.details) < maxDetails
	})
	d.task.Backoff = &b
}

func (d *taskDecoder) dependencies(name string, value []byte) {
	if err := json.Unmarshal(value, &d.task.Dependencies); err != nil {
		d.wrongf(name, value, "must be a list of ids")
	} else if len(d.task.Dependencies) == 0 {
		d.task.Dependencies = nil
	}
}

// labels reads what a task asks of its node's labels: a selector, or plain labels.
func (d *taskDecoder) labels(name string, value []byte) {
	if value[0] == '"' {
		d.selector(name, value)
		return
	}
	if value[0] != '{' {
		d.wrongf(name, value, `must be a selector ("zone=cn-north,!spot") or an object of plain labels ({"zone":"cn-north"})`)
		return
	}
	labels := make(map[string]string)
	rawjson.Members(value, func(key, text []byte) bool {
		if len(labels) == task.MaxRequirements {
			d.wrongf(name, nil, "has more than %d labels", task.MaxRequirements)
			return false
		}
		s, ok := d.str(name+"."+shorten(string(key)), text)
		labels[string(key)] = string(s)
		return ok
	})
	if len(labels) > 0 {
		d.task.Labels = labels
	}
}

func (d *taskDecoder) selector(name string, value []byte) {
	s, ok := d.str(name, value)
	switch {
	case !ok:
	case d.task.Selector != "":
		d.wrongf(name, value, "is given twice, as labels and as selector: send one of them")
	default:
		d.task.Selector = string(s)
	}
}

// strategy reads the name of a strategy without regard to case.
func (d *taskDecoder) strategy(name string, value []byte) {
	s, ok := d.str(name, value)
	if !ok || len(s) == 0 {
		return
	}
	strategy, known := placement.ParseStrategy(string(s))
	if !known {
		d.wrongf(name, value, "must be one of %v, without regard to case", placement.Strategies())
		return
	}
	d.task.Strategy = string(strategy)
}

// echo is what an error shows of a value: the value itself, or the beginning of its text if it is long or an object;
// nil for none.
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

// splitBatch returns the text of each task of a batch, 1 to limit of them, or says what is wrong with the batch as a
// whole.
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
