package task_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	node := map[string]string{"zone": "cn-north", "gpu": "h100", "example.com/disk": "ssd", "cores": "16", "empty": ""}
	for text, want := range map[string]bool{
		"":                               true,
		"  ":                             true,
		"zone=cn-north":                  true,
		"zone==cn-north":                 true,
		"zone = cn-north , gpu":          true,
		"zone=cn-south":                  false,
		"zone!=cn-south":                 true,
		"zone!=cn-north":                 false,
		"missing!=x":                     true,
		"gpu in (a100,h100)":             true,
		"gpu in(a100, h100)":             true,
		"gpu in (a100)":                  false,
		"gpu notin (a100)":               true,
		"missing notin (a100)":           true,
		"gpu notin (a100,h100)":          false,
		"gpu":                            true,
		"spot":                           false,
		"!spot":                          true,
		"! spot":                         true,
		"!gpu":                           false,
		"cores>8":                        true,
		"cores>16":                       false,
		"cores<17":                       true,
		"gpu>1":                          false,
		"missing<5":                      false,
		"empty=":                         true,
		"empty in (,x)":                  true,
		"example.com/disk=ssd":           true,
		"zone=cn-north,gpu in (h100),!x": true,
		"zone=cn-north,gpu in (h100),x":  false,
	} {
		s, err := task.ParseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := s.Matches(node); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestSelectorSaysWhereItDoesNotParse(t *testing.T) {
	t.Parallel()
	for text, at := range map[string]int{
		"zone=":             -1, // an empty value is one
		"=a":                0,
		"a,":                2,
		"a b":               2,
		"a=b=c":             3,
		"a=b c":             4,
		"zone==a,gpu ~ x":   12,
		"gpu in a100":       7,
		"gpu in (a100":      12,
		"gpu in (a b)":      10,
		"gpu in (-)":        8,
		"!gpu=a":            4,
		"cores>many":        6,
		"-a":                0,
		"a/b/c":             0,
		"/b":                0,
		"a,(":               2,
		"z\u00fc":           0,
		"x=\x00":            2,
		"k=" + long(64):     2,
		long(64):            0,
		long(254) + "/x":    0,
		"a in (" + many(65): 6 + 64*2,
	} {
		_, err := task.ParseSelector(text)
		var bad *task.SelectorError
		switch {
		case at < 0 && err == nil:
		case !errors.As(err, &bad):
			t.Errorf("%.40q: error %v, want where it does not parse", text, err)
		case bad.At != at:
			t.Errorf("%.40q: at byte %d, want %d: %v", text, bad.At, at, err)
		}
	}
	for _, text := range []string{long(5000), strings.Repeat("a,", 65) + "a"} {
		if _, err := task.ParseSelector(text); err == nil {
			t.Errorf("%d bytes were taken", len(text))
		}
	}
}

func long(n int) string { return strings.Repeat("a", n) }
func many(n int) string { return strings.Repeat("a,", n-1) + "a)" }

func TestNodeSelectorIsLabelsAndSelectorTogether(t *testing.T) {
	t.Parallel()
	a := task.Task{Labels: map[string]string{"zone": "a", "gpu": "x"}, Selector: "!spot,zone=a"}
	b := task.Task{Selector: " gpu = x, !spot ,zone==a"}
	sa, errA := a.NodeSelector()
	sb, errB := b.NodeSelector()
	if errA != nil || errB != nil || sa.String() != sb.String() || sa.String() != "!spot,gpu=x,zone=a" {
		t.Errorf("%q %v and %q %v, want them equal", sa, errA, sb, errB)
	}
	tooMany := task.Task{Labels: map[string]string{}}
	for i := range 65 {
		tooMany.Labels[fmt.Sprint("k", i)] = "v"
	}
	for name, bad := range map[string]task.Task{
		"too many":    tooMany,
		"long value":  {Labels: map[string]string{"a": long(10 << 10)}},
		"bad key":     {Labels: map[string]string{"a b": "c"}},
		"bad selects": {Selector: "a in"},
	} {
		if _, err := bad.NodeSelector(); err == nil || bad.Unfit() == "" {
			t.Errorf("%s: taken", name)
		}
	}
}

// FuzzParseSelector: whatever is parsed has a canonical text that parses to itself and selects the same nodes.
func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"", "a", "!a", "a=b,c!=d", "a in (x,y),b notin (,z)", "n>5,m<-3", "a in (", "a==", "e.x/y=1"} {
		f.Add(s, "a", "b")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		s, err := task.ParseSelector(text)
		if err != nil {
			var bad *task.SelectorError
			if !errors.As(err, &bad) || bad.At < 0 || bad.At > len(text) || len(err.Error()) > 1000 {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := task.ParseSelector(s.String())
		if len(s.String()) > task.MaxSelectorBytes {
			return // written out it may be a little longer
		}
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q reads as %q, and that as %q, %v", text, s, again, err)
		}
		for _, labels := range []map[string]string{nil, {key: value}, {"a": value, "b": "x"}} {
			if s.Matches(labels) != again.Matches(labels) {
				t.Fatalf("%q and %q differ on %v", text, s, labels)
			}
		}
	})
}
