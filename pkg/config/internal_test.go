package config

import (
	"strings"
	"testing"
)

// Every field has a variable, a syntax that exists, a range that can be read,
// and something to follow; a variable of two structs means the same in both.
func TestTags(t *testing.T) {
	t.Parallel()
	seen := map[string]field{}
	for _, spec := range []any{&Controller{}, &Node{}, &Client{}} {
		variables := map[string]bool{}
		for _, f := range fields(spec) {
			variables[f.variable] = true
		}
		for _, f := range fields(spec) {
			if f.variable == "" || f.variable != strings.ToUpper(f.variable) {
				t.Errorf("%s has the variable %q", f.name, f.variable)
			}
			if _, ok := syntaxes[f.syntax]; f.syntax != "" && !ok {
				t.Errorf("%s has the unknown syntax %q", f.variable, f.syntax)
			}
			if word, ok := f.word(f.fallback); f.words != "" && f.fallback != "" && (!ok || word != f.fallback) {
				t.Errorf("the default %q of %s is none of its words %q", f.fallback, f.variable, f.words)
			}
			if f.limits != "" {
				lowest, highest, _ := strings.Cut(f.limits, "..")
				if f.bound(lowest) >= f.bound(highest) {
					t.Errorf("%s has the range %q", f.variable, f.limits)
				}
			}
			if f.value.CanInt() && f.limits == "" {
				t.Errorf("%s has no range", f.variable)
			}
			if f.follows != "" && !variables[f.follows] {
				t.Errorf("%s follows %q, which its struct does not have", f.variable, f.follows)
			}
			if err := f.process(noVariable); err != nil {
				t.Errorf("%s has a default that cannot be used: %v", f.variable, err)
			}
			if f.dev != "" && f.dev != notRead {
				here := f
				here.fallback = f.dev
				if err := here.process(noVariable); err != nil || f.dev == f.fallback {
					t.Errorf("%s has %q for skalds dev: %v", f.variable, f.dev, err)
				}
			}
			if other, ok := seen[f.variable]; ok && (other.fallback != f.fallback || other.limits != f.limits || other.words != f.words ||
				other.syntax != f.syntax || other.value.Type() != f.value.Type()) {
				t.Errorf("%s means different things in two structs", f.variable)
			}
			seen[f.variable] = f
		}
	}
}

func TestIDFromHostName(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"worker-1.example":       "worker-1.example-",
		"röm {1}":                "r-m--1--",
		strings.Repeat("h", 300): strings.Repeat("h", 100) + "-",
	} {
		id := idFrom(host)
		if !strings.HasPrefix(id, want) || len(id) != len(want)+8 || !idPattern.MatchString(id) {
			t.Errorf("%q: got %q, want %s and 8 characters", host, id, want)
		}
	}
}
