package registry_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	older := registry.Node{Running: 3, Queued: 2}
	if running, queued := older.Slots(); running != 3 || queued != 2 {
		t.Errorf("a node that says no slots has %d and %d", running, queued)
	}
	wide := registry.Node{Running: 3, SlotsRunning: 12, Queued: 1, SlotsQueued: 4}
	if running, queued := wide.Slots(); running != 12 || queued != 4 {
		t.Errorf("%d and %d", running, queued)
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

// The tests of the codecs for Redis, Kafka and REST take the example for a heartbeat in which every field can be lost.
func TestExampleHasEveryField(t *testing.T) {
	t.Parallel()
	n := reflect.ValueOf(*registrytest.Example("n1", "i", 1))
	for i := range n.NumField() {
		if n.Field(i).IsZero() {
			t.Errorf("the example lacks %s", n.Type().Field(i).Name)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	n := registrytest.Example("n1", "i", 1)
	c := reflect.ValueOf(n.Clone())
	if !reflect.DeepEqual(c.Interface(), *n) {
		t.Fatalf("cloned as %+v\nwant %+v", c.Interface(), *n)
	}
	for i := range c.NumField() {
		switch f := reflect.ValueOf(*n).Field(i); f.Kind() {
		case reflect.Map, reflect.Slice, reflect.Pointer:
			if f.Pointer() == c.Field(i).Pointer() {
				t.Errorf("%s is shared", c.Type().Field(i).Name)
			}
		default:
		}
	}
}
