package registry_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

const today = 1_796_010_393_269

func TestValidate(t *testing.T) {
	t.Parallel()
	many := func(n int) map[string]int {
		m := map[string]int{}
		for i := range n {
			m[fmt.Sprint(i)] = 1
		}
		return m
	}
	const day = int64(24 * time.Hour / time.Millisecond)
	tests := []struct {
		name   string
		change func(n *registry.Node)
		want   []string // parts of the reason; none = it is believed
	}{
		{"every field", func(*registry.Node) {}, nil},
		{"an older node", func(n *registry.Node) { *n = registry.Node{ID: "n", Incarnation: "i", Counter: 1} }, nil},
		{"no id", func(n *registry.Node) { n.ID = "" }, []string{"id is empty"}},
		{"largest capacity", func(n *registry.Node) { n.Capacity, n.Prefetch = registry.MaxCapacity, registry.MaxCapacity }, nil},
		{"capacity", func(n *registry.Node) { n.Capacity = registry.MaxCapacity + 1 }, []string{"capacity is 1000001", "above 1000000"}},
		{"capacity of 2^31", func(n *registry.Node) { n.Capacity = 1 << 31 }, []string{"capacity is 2147483648"}},
		{"negative capacity", func(n *registry.Node) { n.Capacity = -1 }, []string{"capacity is -1", "below 0"}},
		{"negative prefetch", func(n *registry.Node) { n.Prefetch = -1 }, []string{"prefetch"}},
		{"prefetch", func(n *registry.Node) { n.Prefetch = registry.MaxCapacity + 1 }, []string{"prefetch is 1000001"}},
		{"negative load", func(n *registry.Node) { n.Running = -1 }, []string{"running is -1"}},
		{"negative queue", func(n *registry.Node) { n.Queued = -1 }, []string{"queued"}},
		{"huge load", func(n *registry.Node) { n.SlotsRunning = 1 << 40 }, []string{"slotsRunning"}},
		{"negative slots", func(n *registry.Node) { n.SlotsQueued = -1 }, []string{"slotsQueued"}},
		{"counter", func(n *registry.Node) { n.Counter = math.MinInt64 }, []string{"counter"}},
		{"received", func(n *registry.Node) { n.Received = -1 }, []string{"received"}},
		{"finished", func(n *registry.Node) { n.Finished = -1 }, []string{"finished"}},
		{"term", func(n *registry.Node) { n.Term = -1 }, []string{"term"}},
		{"round-robin count", func(n *registry.Node) { n.RoundRobinCount = -1 }, []string{"roundRobinCount"}},
		{"a count that cannot be counted on from", func(n *registry.Node) { n.RoundRobinCount = math.MaxInt64 }, []string{"roundRobinCount"}},
		{"partition", func(n *registry.Node) { n.Partition = 1 << 31 }, []string{"partition"}},
		{"protocol", func(n *registry.Node) { n.Protocol = -1 }, []string{"protocol"}},
		{"cpus", func(n *registry.Node) { n.CPUs = 1 << 31 }, []string{"cpus"}},
		{"memory", func(n *registry.Node) { n.Memory = -1 }, []string{"memory"}},
		{"memoryTotal", func(n *registry.Node) { n.MemoryTotal = math.MaxInt64 }, []string{"memoryTotal"}},
		{"cpu below 0", func(n *registry.Node) { n.CPU = -0.1 }, []string{"cpu is -0.1"}},
		{"cpu is no number", func(n *registry.Node) { n.CPU = math.NaN() }, []string{"cpu is NaN"}},
		{"cpu without end", func(n *registry.Node) { n.CPU = math.Inf(1) }, []string{"cpu is +Inf"}},
		{"a clock ahead by a day", func(n *registry.Node) { n.StartedAt = today + day }, nil},
		{"a clock ahead by more", func(n *registry.Node) { n.StartedAt = today + day + 1 }, []string{"startedAt is 2026-12-01", "ahead"}},
		{"the end of time", func(n *registry.Node) { n.StartedAt = math.MaxInt64 }, []string{"ahead"}},
		{"before time", func(n *registry.Node) { n.StartedAt = -1 }, []string{"startedAt"}},
		{"most classes", func(n *registry.Node) { n.Classes = strings.Fields(strings.Repeat("c ", registry.MaxClasses)) }, nil},
		{"classes", func(n *registry.Node) { n.Classes = strings.Fields(strings.Repeat("c ", registry.MaxClasses+1)) }, []string{"4097 classes"}},
		{"a class without a name", func(n *registry.Node) { n.Classes = []string{"a", ""} }, []string{`""`}},
		{"a class of 10 KB", func(n *registry.Node) { n.Classes = []string{strings.Repeat("c", 10_000)} }, []string{"10000 bytes"}},
		{"classes with a capacity", func(n *registry.Node) { n.CapacityByClass = many(registry.MaxClasses + 1) }, []string{"capacityByClass"}},
		{"negative capacity of a class", func(n *registry.Node) { n.CapacityByClass = map[string]int{"a": -1} }, []string{`"a" is -1`}},
		{"capacity of a class", func(n *registry.Node) { n.CapacityByClass = map[string]int{"a": 1 << 31} }, []string{`"a" is 2147483648`}},
		{"a long class with a capacity", func(n *registry.Node) { n.CapacityByClass = map[string]int{strings.Repeat("c", 257): 1} }, []string{"257 bytes"}},
		{"negative load of a class", func(n *registry.Node) { n.RunningByClass = map[string]int{"a": -1} }, []string{"runningByClass"}},
		{"labels", func(n *registry.Node) {
			n.Labels = map[string]string{}
			for key := range many(65) {
				n.Labels[key] = ""
			}
		}, []string{"65 labels"}},
		{"a label of 10 KB", func(n *registry.Node) { n.Labels = map[string]string{"zone": strings.Repeat("a", 10_000)} }, []string{`"zone"`, "10000 bytes"}},
		{"a key of 10 KB", func(n *registry.Node) { n.Labels = map[string]string{strings.Repeat("a", 10_000): ""} }, []string{"key", "10000 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := registrytest.Example("n1", "i", 1)
			tt.change(n)
			got := registry.Validate(n, today)
			if (got == "") != (len(tt.want) == 0) {
				t.Fatalf("it says %q", got)
			}
			for _, part := range tt.want {
				if !strings.Contains(got, part) || len(got) > 300 {
					t.Errorf("it says %q, want a short text with %q", got, part)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(n *registry.Node)
		want   string // part of the error; empty = none
	}{
		{"good", func(*registry.Node) {}, ""},
		{"odd but good id", func(n *registry.Node) { n.ID = "a b:c/ü[x]*" }, ""},
		{"opening brace", func(n *registry.Node) { n.ID = "a{" }, "brace"},
		{"closing brace", func(n *registry.Node) { n.ID = "}a" }, "brace"},
		{"longest id", func(n *registry.Node) { n.ID = strings.Repeat("x", registry.MaxIDBytes) }, ""},
		{"id too long", func(n *registry.Node) { n.ID = strings.Repeat("x", registry.MaxIDBytes+1) }, "256 bytes"},
		{"no id", func(n *registry.Node) { n.ID = "" }, "empty"},
		{"newline in the id", func(n *registry.Node) { n.ID = "a\nb" }, "control"},
		{"id not UTF-8", func(n *registry.Node) { n.ID = "a\xff" }, "UTF-8"},
		{"no incarnation", func(n *registry.Node) { n.Incarnation = "" }, "incarnation"},
		{"largest", func(n *registry.Node) { n.Address = strings.Repeat("x", registry.MaxNodeBytes-1) }, ""},
		{"classes too large", func(n *registry.Node) { n.Classes = []string{strings.Repeat("x", registry.MaxNodeBytes)} }, "classes (1)"},
		{"capacities too large", func(n *registry.Node) {
			n.CapacityByClass = map[string]int{strings.Repeat("x", registry.MaxNodeBytes): 1}
		}, "65537 bytes"},
		{"running by class does not count", func(n *registry.Node) {
			n.RunningByClass = map[string]int{strings.Repeat("x", registry.MaxNodeBytes): 1}
		}, ""},
		{"labels too large", func(n *registry.Node) { n.Labels = map[string]string{"k": strings.Repeat("x", registry.MaxNodeBytes)} }, "labels (1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &registry.Node{ID: "n1", Incarnation: "i"}
			tt.change(n)
			err := registry.Check(n)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}
