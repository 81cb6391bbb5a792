package task

import (
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", MaxLabelBytes)
	for key, want := range map[string]string{
		"zone": "", "GPU": "", "a": "", "a.b_c-d": "", long: "", "example.org/zone": "", "k8s-1.io/x": "", strings.Repeat("a.", 126) + "a/k": "",
		"": "empty", "p/": "empty", long + "a": "64 bytes", "-a": "between", "a.": "between", "a b": "between", "zöne": "between",
		"/a": "prefix", strings.Repeat("a.", 127) + "a/k": "253", "P/a": "lower case", "a..b/c": "DNS", "a_b/c": "DNS", "-a/c": "DNS", "a-/c": "DNS",
		"p/q/a": "between",
	} {
		if got := BadLabelKey(key); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("key %q: %q, want %q", key, got, want)
		}
	}
	for value, want := range map[string]string{
		"": "", "A100": "", "1.2_3-4": "", long: "", long + "a": "64 bytes", "a/b": "between", ".b": "between", "b-": "between",
	} {
		if got := BadLabelValue(value); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("value %q: %q, want %q", value, got, want)
		}
	}
}
