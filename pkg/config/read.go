package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// reading is what became of the environment on its way into one struct.
type reading struct {
	problems []Problem
	origins  map[string]origin // by the field's variable: where its value came from
	settled  map[string]bool   // by the field's variable: its problem is reported already
}

// origin is a variable of the environment and the text it holds.
type origin struct {
	variable string
	text     string
	shown    string // the text as a message may repeat it
	file     bool   // the text is the path of a file that holds the value
}

// read fills the struct that spec points to. A field whose variable cannot be
// used has its default, so that the rules that look at several fields have
// something to work with.
func read(spec any) *reading { return readFields(fields(spec)) }

func readFields(all []field) *reading {
	r := &reading{origins: map[string]origin{}, settled: map[string]bool{}}
	values := map[string]reflect.Value{}
	for _, f := range all {
		r.read(f)
		values[f.variable] = f.value
	}
	for _, f := range all {
		if _, set := r.origins[f.variable]; f.follows == "" || set {
			continue
		}
		f.follow(values[f.follows])
		r.settled[f.variable] = true // a bad value is the fault of the other
	}
	return r
}

func (r *reading) read(f field) {
	from, problem := f.find()
	if problem == nil && from.variable != "" {
		problem = f.load(from)
		r.origins[f.variable] = from
	}
	if problem != nil {
		r.problems = append(r.problems, *problem)
		r.settled[f.variable] = true
	}
	if problem != nil || from.variable == "" {
		// The default; it is known to be good, a test reads them all.
		_ = f.process(noVariable)
	}
}

// finish returns all problems, those of the reading and those that the struct's
// own rules found, as one error.
func (r *reading) finish(found []Problem) error {
	for _, p := range found {
		if r.settled[p.Variable] {
			continue
		}
		if from, set := r.origins[p.Variable]; set {
			p.Variable, p.Value = from.variable, from.shown
		}
		r.problems = append(r.problems, p)
	}
	return errorOf(r.problems)
}

// find returns the variable that holds the field's value, a zero origin if none
// does. It is a problem if two of them do and differ.
func (f field) find() (origin, *Problem) {
	names := []origin{{variable: f.variable}}
	if f.alias != "" {
		names = append(names, origin{variable: f.alias})
	}
	if f.secret() {
		names = append(names, origin{variable: f.variable + "_FILE", file: true})
	}
	var found origin
	for _, o := range names {
		o.text = os.Getenv(o.variable)
		o.shown = o.text
		if !o.file {
			o.shown = f.show(o.text)
		}
		switch {
		case o.text == "":
		case found.variable == "":
			found = o
		case o.file || o.text != found.text:
			return origin{}, &Problem{
				Variable: o.variable,
				Value:    o.shown,
				Want:     fmt.Sprintf("it not set, because %s (%q) is set too", found.variable, shorten(found.shown)),
			}
		}
	}
	return found, nil
}

// load takes the value from where it was found.
func (f field) load(from origin) *Problem {
	if from.file {
		text, err := readSecretFile(from.text)
		if err != nil {
			return &Problem{Variable: from.variable, Value: from.shown, Want: err.Error()}
		}
		f.value.SetString(text)
		return nil
	}
	if f.words != "" {
		word, ok := f.word(from.text)
		if !ok {
			return &Problem{Variable: from.variable, Value: from.shown, Want: f.wantWord()}
		}
		f.value.SetString(word)
		return nil
	}
	err := f.process(from.variable)
	if err == nil {
		return nil
	}
	want := err.Error()
	if f.limits != "" {
		want = f.wantRange()
	}
	return &Problem{Variable: from.variable, Value: from.shown, Want: want}
}

// noVariable is a name that no variable of an environment can have, so that
// envconfig takes the default.
const noVariable = "="

// textTypes are the types that read the text of a plain type's field.
var textTypes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[time.Duration](): reflect.TypeFor[Duration](),
	reflect.TypeFor[int]():           reflect.TypeFor[number](),
	reflect.TypeFor[bool]():          reflect.TypeFor[boolean](),
}

// process has envconfig read the variable, or the default if the variable is
// not set, into the field. Each field is read on its own, in a struct of one
// field, because envconfig stops at the first error of a struct.
func (f field) process(variable string) error {
	typ := f.value.Type()
	if t, ok := textTypes[typ]; ok {
		typ = t
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: f.name,
		Type: typ,
		Tag:  reflect.StructTag(fmt.Sprintf("envconfig:%q default:%q", variable, f.fallback)),
	}}))
	if err := envconfig.Process("", one.Interface()); err != nil {
		if parse, ok := errors.AsType[*envconfig.ParseError](err); ok {
			return parse.Err // what the type wants; the rest is said by the Problem
		}
		return fmt.Errorf("read %s: %w", variable, err)
	}
	f.value.Set(one.Elem().Field(0).Convert(f.value.Type()))
	return nil
}
