package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

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
		}, "say"},
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

func TestNewest(t *testing.T) {
	t.Parallel()
	in := []registry.HeldTask{
		{ID: "b", Attempt: 2, ClaimID: "b2", State: task.ReportStarted},
		{ID: "c", Attempt: 1, ClaimID: "c1"},
		{ID: "b", Attempt: 1, ClaimID: "b1", State: task.ReportReleased},
		{ID: "a", Attempt: 1, ClaimID: "a1"},
		{ID: "b", Attempt: 3, ClaimID: "b3"},
	}
	before := slices.Clone(in)
	want := []registry.HeldTask{{ID: "a", Attempt: 1, ClaimID: "a1"}, {ID: "b", Attempt: 3, ClaimID: "b3"}, {ID: "c", Attempt: 1, ClaimID: "c1"}}
	if got := registry.Newest(in); !slices.Equal(got, want) {
		t.Errorf("Newest = %v, want %v", got, want)
	}
	if !slices.Equal(in, before) {
		t.Error("Newest changed its argument")
	}
}
