package task

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of what a task may ask of a node's labels.
const (
	MaxSelectorBytes = 4096 // of the text of a selector, and of plain labels together
	MaxRequirements  = 64   // of both together
	maxSelectorValue = 64   // values in one list
)

// Selector selects the nodes a task may run on by their labels. All its requirements must hold. The zero value selects
// every node.
type Selector struct {
	requirements []requirement
	text         string
}

// operator is how a requirement compares.
type operator uint8

const (
	in operator = iota
	notIn
	exists
	absent
	greater
	less
)

// requirement is one part of a selector.
type requirement struct {
	key    string
	op     operator
	values []string // of in and notIn, sorted
	number int64    // of greater and less
}

// SelectorError is the error for a selector that does not parse.
type SelectorError struct {
	Text string
	At   int // byte
	Msg  string
}

// Error implements error.
func (e *SelectorError) Error() string {
	return fmt.Sprintf("selector %q: at byte %d: %s", head(e.Text), e.At, e.Msg)
}

// head returns the beginning of a text, for errors.
func head(s string) string {
	const limit = 80
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}

// ParseSelector parses the syntax of Kubernetes' label selectors, such as zone=cn-north,gpu in (a100,h100),!spot.
// Requirements are separated by commas: key, !key, key=value, key==value, key!=value, key in (a,b), key notin (a,b),
// key>n, key<n. As in Kubernetes, != and notin also hold for a node without the label. > and < compare whole numbers
// and hold for no other value. The empty text selects every node.
func ParseSelector(text string) (Selector, error) {
	if len(text) > MaxSelectorBytes {
		return Selector{}, &SelectorError{Text: text, Msg: fmt.Sprintf("%d bytes, %d at most", len(text), MaxSelectorBytes)}
	}
	p := selectorParser{text: text}
	if p.space(); p.at == len(text) {
		return Selector{}, nil
	}
	for {
		if err := p.requirement(); err != nil {
			return Selector{}, err
		}
		if len(p.found) > MaxRequirements {
			return Selector{}, p.failf(p.at, "more than %d requirements", MaxRequirements)
		}
		if p.space(); p.at == len(text) {
			return newSelector(p.found), nil
		}
		if text[p.at] != ',' {
			return Selector{}, p.failf(p.at, "%q stands where a comma or the end must be", text[p.at])
		}
		p.at++
	}
}

// NodeSelector returns what the task asks of a node: its plain labels and its selector together.
func (t *Task) NodeSelector() (Selector, error) {
	s, err := ParseSelector(t.Selector)
	if err != nil || len(t.Labels) == 0 {
		return s, err
	}
	size := 0
	all := slices.Clone(s.requirements)
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		value := t.Labels[key]
		size += len(key) + len(value)
		if reason := BadLabelKey(key); reason != "" {
			return Selector{}, fmt.Errorf("label key %q: %s", head(key), reason)
		}
		if reason := BadLabelValue(value); reason != "" {
			return Selector{}, fmt.Errorf("label %s: value %q: %s", key, head(value), reason)
		}
		all = append(all, requirement{key: key, op: in, values: []string{value}})
	}
	if size > MaxSelectorBytes || len(all) > MaxRequirements {
		return Selector{}, fmt.Errorf("%d labels and requirements of %d bytes: at most %d of %d are allowed", len(all), size, MaxRequirements, MaxSelectorBytes)
	}
	return newSelector(all), nil
}

// newSelector sorts requirements, so that equal selectors have equal texts.
func newSelector(list []requirement) Selector {
	texts := make(map[string]requirement, len(list))
	for _, r := range list {
		texts[r.String()] = r
	}
	order := slices.Sorted(maps.Keys(texts))
	s := Selector{text: strings.Join(order, ",")}
	for _, text := range order {
		s.requirements = append(s.requirements, texts[text])
	}
	return s
}

// String returns the canonical text of the selector, which does not depend on the order of the requirements.
func (s Selector) String() string { return s.text }

// Empty reports whether every node is selected.
func (s Selector) Empty() bool { return len(s.requirements) == 0 }

// In yields each label that must have one of some values, with those values, for lookups of nodes by label.
func (s Selector) In() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for i := range s.requirements {
			if r := &s.requirements[i]; r.op == in && !yield(r.key, r.values) {
				return
			}
		}
	}
}

// Matches reports whether a node with these labels is selected.
func (s Selector) Matches(labels map[string]string) bool {
	for i := range s.requirements {
		if !s.requirements[i].holds(labels) {
			return false
		}
	}
	return true
}

func (r *requirement) holds(labels map[string]string) bool {
	value, there := labels[r.key]
	switch r.op {
	case in:
		return there && slices.Contains(r.values, value)
	case notIn:
		return !there || !slices.Contains(r.values, value)
	case exists:
		return there
	case absent:
		return !there
	case greater, less:
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return r.op == greater && n > r.number || r.op == less && n < r.number
}

func (r requirement) String() string {
	list := "(" + strings.Join(r.values, ",") + ")"
	switch r.op {
	case in:
		if len(r.values) == 1 {
			return r.key + "=" + r.values[0]
		}
		return r.key + " in " + list
	case notIn:
		if len(r.values) == 1 {
			return r.key + "!=" + r.values[0]
		}
		return r.key + " notin " + list
	case exists:
		return r.key
	case absent:
		return "!" + r.key
	case greater:
		return r.key + ">" + strconv.FormatInt(r.number, 10)
	case less:
	}
	return r.key + "<" + strconv.FormatInt(r.number, 10)
}

// selectorParser goes through the text of a selector.
type selectorParser struct {
	text  string
	at    int
	found []requirement
}

func (p *selectorParser) failf(at int, format string, args ...any) error {
	return &SelectorError{Text: p.text, At: at, Msg: fmt.Sprintf(format, args...)}
}

func (p *selectorParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// word reads up to the next byte that separates.
func (p *selectorParser) word() string {
	from := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,()=!<>", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[from:p.at]
}

// take goes past a text that comes next.
func (p *selectorParser) take(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *selectorParser) requirement() error {
	p.space()
	not := p.take("!")
	p.space()
	start := p.at
	key := p.word()
	if key == "" {
		return p.failf(start, "a label key must stand here")
	}
	if reason := BadLabelKey(key); reason != "" {
		return p.failf(start, "label key %q: %s", head(key), reason)
	}
	p.space()
	end := p.at == len(p.text) || p.text[p.at] == ','
	switch {
	case not && !end:
		return p.failf(p.at, "after !%s only a comma or the end may come", key)
	case not:
		p.found = append(p.found, requirement{key: key, op: absent})
	case end:
		p.found = append(p.found, requirement{key: key, op: exists})
	case p.take("=="), p.take("="):
		return p.value(key, in)
	case p.take("!="):
		return p.value(key, notIn)
	case p.take(">"):
		return p.number(key, greater)
	case p.take("<"):
		return p.number(key, less)
	default:
		return p.list(key)
	}
	return nil
}

func (p *selectorParser) value(key string, op operator) error {
	p.space()
	start := p.at
	value := p.word()
	if reason := BadLabelValue(value); reason != "" {
		return p.failf(start, "value %q: %s", head(value), reason)
	}
	p.found = append(p.found, requirement{key: key, op: op, values: []string{value}})
	return nil
}

func (p *selectorParser) number(key string, op operator) error {
	p.space()
	start := p.at
	value := p.word()
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return p.failf(start, "%q is not a whole number", head(value))
	}
	p.found = append(p.found, requirement{key: key, op: op, number: n})
	return nil
}

func (p *selectorParser) list(key string) error {
	start := p.at
	op, word := in, p.word()
	switch word {
	case "in":
	case "notin":
		op = notIn
	default:
		return p.failf(start, "%q is no operator: =, ==, !=, in, notin, > and < are", head(p.text[start:max(p.at, min(start+1, len(p.text)))]))
	}
	p.space()
	if !p.take("(") {
		return p.failf(p.at, "after %q a list in parentheses must come", word)
	}
	var values []string
	for {
		p.space()
		at := p.at
		value := p.word()
		if reason := BadLabelValue(value); reason != "" {
			return p.failf(at, "value %q: %s", head(value), reason)
		}
		if values = append(values, value); len(values) > maxSelectorValue {
			return p.failf(at, "more than %d values", maxSelectorValue)
		}
		p.space()
		switch {
		case p.take(","):
		case p.take(")"):
			slices.Sort(values)
			p.found = append(p.found, requirement{key: key, op: op, values: slices.Compact(values)})
			return nil
		default:
			return p.failf(p.at, "a comma or ) must stand here")
		}
	}
}
