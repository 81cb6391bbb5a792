package monitor_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
)

// takes reports whether n1 takes work.
func (b *bundle) takes() bool {
	nodes, _ := b.fleet.View(b.clock.Boot())
	return len(nodes) == 1
}

func (b *bundle) drain(t *testing.T, draining bool) {
	t.Helper()
	if err := b.store.SetDraining(t.Context(), n1.Node, draining); err != nil {
		t.Fatal(err)
	}
}

// says sends a heartbeat of n1 with a state.
func (b *bundle) says(t *testing.T, s registry.State) {
	t.Helper()
	b.clock.Advance(time.Second)
	b.counter++
	err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: n1.Node, Incarnation: n1.Incarnation, Counter: b.counter, Mode: registry.ModeNode,
		State: s, Classes: []string{"a"}, Capacity: 10, Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.round(t)
}

func TestADrainedNodeGetsNothingAndIsToldUntilItSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.drain(t, true)
	b.round(t)
	if b.takes() {
		t.Fatal("it takes work")
	}
	for _, step := range []struct {
		says     registry.State
		draining bool
		told     int
	}{
		{registry.Online, true, 2}, {registry.Online, true, 3}, {registry.Draining, true, 3}, {registry.Draining, true, 3},
		{registry.Draining, false, 4}, {registry.Draining, false, 5}, {registry.Online, false, 5},
	} {
		b.drain(t, step.draining)
		before := b.capacity
		b.says(t, step.says)
		if len(b.wire.drains) != step.told || step.told > 0 && b.wire.drains[step.told-1] != (step.told <= 3) {
			t.Fatalf("%+v: told %v", step, b.wire.drains)
		}
		if want := step.says == registry.Online && !step.draining; b.takes() != want || want && b.capacity == before {
			t.Fatalf("%+v: takes work: %t", step, b.takes())
		}
	}
}

func TestANewLeaderPlacesNothingOnADrainedNode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.drain(t, true)
	b.prime(t)
	if b.takes() {
		t.Error("it takes work")
	}
}

// Whoever stores a drain request sees it in the fleet as soon as the monitor has been asked to follow.
func TestADrainIsShownAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, draining := range []bool{true, false} {
		b.drain(t, draining)
		before := b.capacity
		if err := b.m.FollowDraining(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, not := b.fleet.View(b.clock.Boot())
		if b.takes() == draining || (not[n1.Node] == fleet.Draining) != draining {
			t.Errorf("draining: %t; it takes work: %t, unavailable: %v", draining, b.takes(), not)
		}
		if woken := b.capacity > before; woken == draining {
			t.Errorf("draining: %t; the dispatcher is woken: %t", draining, woken)
		}
	}
}
