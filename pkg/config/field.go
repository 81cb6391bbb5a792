package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field is one field of a configuration struct with what its tags say.
type field struct {
	name     string // of the field in Go
	variable string
	alias    string // "" for none
	fallback string // the default as text, "" for none
	follows  string // the variable whose value is the default, "" for none
	times    string // how many times that value, "" for once
	limits   string // "lowest..highest", "" for none
	words    string // the words to choose from, divided by commas, "" for any text
	syntax   string // a key of syntaxes, "" for none
	dev      string // the default in `skalds dev`, notRead if it does not read it, "" for no difference
	value    reflect.Value
}

// fields returns the fields of the struct that spec points to, those of
// embedded structs in their place.
func fields(spec any) []field { return fieldsOf(reflect.ValueOf(spec).Elem(), "") }

// fieldsOf has the fields of an embedded struct inherit its tag dev.
func fieldsOf(v reflect.Value, dev string) []field {
	var all []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			all = append(all, fieldsOf(v.Field(i), cmp.Or(f.Tag.Get("dev"), dev))...)
			continue
		}
		all = append(all, field{
			name:     f.Name,
			variable: f.Tag.Get("envconfig"),
			alias:    f.Tag.Get("alias"),
			fallback: f.Tag.Get("default"),
			follows:  f.Tag.Get("follows"),
			times:    f.Tag.Get("times"),
			limits:   f.Tag.Get("range"),
			words:    f.Tag.Get("words"),
			syntax:   f.Tag.Get("syntax"),
			dev:      cmp.Or(f.Tag.Get("dev"), dev),
			value:    v.Field(i),
		})
	}
	return all
}

// follow gives the field the default that goes by another one's value: that, or so many times that, as far as the range
// allows.
func (f field) follow(other reflect.Value) {
	if f.times == "" {
		f.value.Set(other)
		return
	}
	_, highest, _ := strings.Cut(f.limits, "..")
	f.value.SetInt(min(f.bound(f.times)*other.Int(), f.bound(highest)))
}

// followed says what the field follows, for people.
func (f field) followed() string {
	if f.times == "" {
		return f.follows
	}
	return f.times + " x " + f.follows
}

// secret says whether the value must not be shown, and so may come from a file.
func (f field) secret() bool {
	switch f.value.Interface().(type) {
	case Secret, URI:
		return true
	default:
		return false
	}
}

// show returns text as a message may repeat it, as the value of this field.
func (f field) show(text string) string {
	switch f.value.Interface().(type) {
	case Secret:
		return Secret(text).String()
	case URI:
		return URI(text).String()
	default:
		return text
	}
}

// check says what is wanted if the value is not allowed, and "" if it is.
func (f field) check() string {
	if c, ok := reflect.TypeAssert[interface{ check() error }](f.value); ok {
		if err := c.check(); err != nil {
			return err.Error()
		}
	}
	if text := f.value.String(); f.words != "" && text != f.fallback {
		if word, ok := f.word(text); !ok || word != text {
			return f.wantWord()
		}
	}
	if f.limits != "" && !f.inRange() {
		return f.wantRange()
	}
	if f.syntax != "" {
		if rule := syntaxes[f.syntax]; !rule.match(f.value.String()) {
			return rule.want
		}
	}
	return ""
}

func (f field) inRange() bool {
	lowest, highest, _ := strings.Cut(f.limits, "..")
	n := f.value.Int()
	return f.bound(lowest) <= n && n <= f.bound(highest)
}

// bound returns one end of the range. The tags are constants of this package,
// which the tests read through, so a bad one is a fault of the program.
func (f field) bound(text string) int64 {
	if _, ok := reflect.TypeAssert[time.Duration](f.value); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(fmt.Sprintf("config: range of %s: %v", f.variable, err))
		}
		return int64(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: range of %s: %v", f.variable, err))
	}
	return n
}

func (f field) wantRange() string {
	lowest, highest, _ := strings.Cut(f.limits, "..")
	if _, ok := reflect.TypeAssert[time.Duration](f.value); ok {
		return fmt.Sprintf("a length of time from %s to %s, such as 500ms or 2s, or a number of seconds", lowest, highest)
	}
	return fmt.Sprintf("a whole number from %s to %s", lowest, highest)
}

// checkFields returns the problems of the fields, each looked at by itself.
func checkFields(spec any) []Problem {
	var problems []Problem
	for _, f := range fields(spec) {
		if want := f.check(); want != "" {
			problems = append(problems, Problem{Variable: f.variable, Value: f.show(fmt.Sprint(f.value.Interface())), Want: want})
		}
	}
	return problems
}
