package config_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/config"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0.5": 500 * time.Millisecond, "-1": -time.Second, "0": 0, "+2": 2 * time.Second,
		"500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "168h": 168 * time.Hour,
	} {
		var d config.Duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: got %v, %v, want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", " 5", "1h30", "five", "1e3", "0x5", "5 s", "Inf", "NaN", "1_000", "99999999999", "7d"} {
		d := config.Duration(time.Minute)
		if err := d.Set(text); err == nil || d != config.Duration(time.Minute) {
			t.Errorf("%q: got %v, %v, want an error and the old value", text, d, err)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"5", "0.5", "1h30m", "-2", "", "1e3", "..", "+-1", "168h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d config.Duration
		if d.Set(text) != nil {
			return
		}
		var again config.Duration
		if err := again.Set(d.String()); err != nil || again != d {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, d, again, err)
		}
	})
}

func TestLabelSyntax(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	many := func(n int) string {
		pairs := make([]string, n)
		for i := range pairs {
			pairs[i] = "k" + strings.Repeat("x", i%60) + string(rune('a'+i/60)) + "=v"
		}
		return strings.Join(pairs, ",")
	}
	for name, text := range map[string]string{
		"plain": "zone=a", "empty value": "gpu=", "prefix": "example.org/zone=eu-1", "longest": long + "=" + long,
		"inner dots": "a.b_c-d=1.2_3-4", "upper case": "GPU=A100", "one character": "a=b",
		"longest prefix": strings.Repeat("a.", 126) + "a/k=v", "64 labels": many(64),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l config.Labels
			if err := l.Set(text); err != nil {
				t.Error(err)
			}
		})
	}
	for name, text := range map[string]string{
		"empty key": "=a", "no equals": "zone", "second equals": "a=b=c", "key too long": long + "a=b", "value too long": "a=" + long + "a",
		"key ends in a hyphen": "a-=b", "value starts with a dot": "a=.b", "space inside": "a b=c", "empty prefix": "/a=b",
		"empty name": "p/=b", "two slashes": "p/q/a=b", "upper case prefix": "P/a=b", "prefix too long": strings.Repeat("a.", 127) + "a/k=v",
		"trailing comma": "a=b,", "not ascii": "zöne=a", "65 labels": many(65),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l config.Labels
			if err := l.Set(text); err == nil {
				t.Errorf("%q is accepted as %v", text, l)
			}
		})
	}
}

// What labels print is what reads as the same labels.
func TestLabelsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		labels := config.Labels(rapid.MapOfN(
			rapid.StringMatching(`([a-z]{1,5}(\.[a-z0-9]{1,5}){0,2}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,10}[A-Za-z0-9])?`),
			rapid.StringMatching(`([A-Za-z0-9]([A-Za-z0-9._-]{0,10}[A-Za-z0-9])?)?`),
			1, 64,
		).Draw(t, "labels"))
		var again config.Labels
		if err := again.Set(labels.String()); err != nil {
			t.Fatal(err)
		}
		if again.String() != labels.String() {
			t.Fatalf("%v reads as %v", labels, again)
		}
	})
}

func FuzzLabels(f *testing.F) {
	for _, seed := range []string{"zone=a,gpu=true", "a=", "=", ",", "example.org/a=b", "a=b=c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l config.Labels
		if l.Set(text) != nil {
			return
		}
		var again config.Labels
		if err := again.Set(l.String()); err != nil || again.String() != l.String() {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, l, again, err)
		}
	})
}

func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{"k1:9092,k2:9092", "[::1]:1", ":1", "a:0", "a", " a:1 , b:2 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var a config.Addresses
		if a.Set(text) != nil {
			return
		}
		var again config.Addresses
		if err := again.Set(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, a, again, err)
		}
	})
}
