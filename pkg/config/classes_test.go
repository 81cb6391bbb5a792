package config_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/config"
)

func TestClassCapacities(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		pairs := make([]string, n)
		for i := range pairs {
			pairs[i] = fmt.Sprintf("class%d:1", i)
		}
		return strings.Join(pairs, ",")
	}
	for text, want := range map[string]config.ClassCapacities{
		"train:1":                {"train": 1},
		"resize:4, train:100000": {"resize": 4, "train": 100_000},
		"image:resize:4":         {"image:resize": 4},
		"größe 2:3":              {"größe 2": 3},
	} {
		var c config.ClassCapacities
		if err := c.Set(text); err != nil || !maps.Equal(c, want) {
			t.Errorf("%q reads as %v, %v", text, c, err)
		}
	}
	const such = "such as resize:4,train:1"
	for text, want := range map[string]string{
		"":                               `"" has no colon`,
		"train":                          `"train" has no colon`,
		"train:1,":                       `"" has no colon`,
		"train:":                         `"" of "train" is no such number`,
		"train:x":                        `"x" of "train"`,
		"train:1.5":                      `"1.5" of "train"`,
		"train:010":                      `"010" of "train"`,
		"train:0":                        `"train" has 0`,
		"train:-1":                       `"train" has -1`,
		"train:100001":                   `"train" has 100001`,
		"train:99999999999999999999":     "is no such number",
		":1":                             "1 to 256 bytes",
		strings.Repeat("x", 257) + ":1":  `has 257)`,
		"train:1,resize:2,train:2":       `"train" stands there twice`,
		many(257):                        "at most 256 classes",
		strings.Repeat("long", 10_000):   "has no colon",
		"a:" + strings.Repeat("9", 9999): "is no such number",
	} {
		var c config.ClassCapacities
		err := c.Set(text)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.40q: %v, want an error with %q", text, err, want)
		} else if !strings.Contains(want, "twice") && !strings.Contains(want, "at most") && !strings.Contains(err.Error(), such) {
			t.Errorf("%.40q: %v does not say what is allowed", text, err)
		}
	}
	var c config.ClassCapacities
	if err := c.Set(many(256)); err != nil || len(c) != 256 {
		t.Errorf("256 classes are %d, %v", len(c), err)
	}
}

// What capacities print is what reads as the same capacities.
func TestClassCapacitiesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := config.ClassCapacities(rapid.MapOfN(rapid.StringMatching(`[A-Za-z][A-Za-z:._ -]{0,10}[a-z]`), rapid.IntRange(1, 100_000), 1, 20).Draw(t, "capacities"))
		var again config.ClassCapacities
		if err := again.Set(c.String()); err != nil || !maps.Equal(again, c) {
			t.Fatalf("%v reads as %v, %v", c, again, err)
		}
	})
}

func FuzzClassCapacities(f *testing.F) {
	for _, seed := range []string{"resize:4,train:1", "a:b:1", ":", "a:", ",", "a:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c config.ClassCapacities
		if c.Set(text) != nil {
			return
		}
		var again config.ClassCapacities
		if err := again.Set(c.String()); err != nil || !maps.Equal(again, c) {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, c, again, err)
		}
	})
}

func TestCapacityByClassOfANode(t *testing.T) {
	setEnv(t, map[string]string{"NODE_CAPACITY_BY_CLASS": "resize:4,train:1"})
	n, err := config.LoadNode()
	if err != nil || !maps.Equal(n.CapacityByClass, config.ClassCapacities{"resize": 4, "train": 1}) {
		t.Errorf("%v, %v", n.CapacityByClass, err)
	}
	setEnv(t, map[string]string{"NODE_CAPACITY_BY_CLASS": "train:many"})
	if _, err := config.LoadNode(); err == nil || !strings.Contains(err.Error(), `NODE_CAPACITY_BY_CLASS is "train:many", want classes with numbers from 1 to 100000, such as`) {
		t.Errorf("it says %v", err)
	}
	n = config.DefaultNode()
	n.ID, n.CapacityByClass = "n", config.ClassCapacities{"train": 0}
	if err := n.Validate(); err == nil || !strings.Contains(err.Error(), "NODE_CAPACITY_BY_CLASS") {
		t.Errorf("in a program: %v", err)
	}
}
