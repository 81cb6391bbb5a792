package monitor_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// A node that fell silent is fenced once, before its work is reassigned; whether the fence arrives does not matter.
func TestASilentNodeIsFencedBeforeItsWorkIsReassigned(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"it arrives": nil, "it does not": errors.New("no leader")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			tk := b.assigned(t, "t", true)
			b.apply(t, started(&tk))
			b.silence(t)
			b.wire.err, b.tide.reached = failure, false
			b.round(t)
			if got := b.get(t, "t"); got.LifecycleStatus != task.Running || len(b.wire.fenced) != 1 || b.wire.fenced[0].Key != n1 {
				t.Fatalf("%s, fenced %v", got.LifecycleStatus, b.wire.fenced)
			}
			b.tide.reached = true
			b.round(t)
			if got := b.get(t, "t"); got.LifecycleStatus != task.Created || len(b.wire.fenced) != 1 {
				t.Errorf("%s, fenced %v", got.LifecycleStatus, b.wire.fenced)
			}
			b.round(t)
		})
	}
}

func TestWhichNodesAreNotFenced(t *testing.T) {
	t.Parallel()
	t.Run("a node that said goodbye", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.assigned(t, "t", true)
		b.fleet.Left(n1)
		b.round(t)
		if len(b.wire.fenced) != 0 {
			t.Errorf("fenced %v", b.wire.fenced)
		}
	})
	t.Run("anybody, by a leader whose lease is over", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.assigned(t, "t", true)
		b.silence(t)
		b.lease.over = true
		b.round(t)
		if len(b.wire.fenced) != 0 {
			t.Errorf("fenced %v", b.wire.fenced)
		}
	})
}

// The topic was made anew with fewer partitions, and that of a node is gone. Nothing can be announced there, and nobody
// else can confirm the node there. If it dies, its work is reassigned all the same, but not while the partition may
// have existed.
func TestTheWorkOfANodeWithoutAPartitionIsReassigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wire.nowhere = true
	lives, counter := true, int64(0)
	rounds := func(n int) {
		t.Helper()
		for range n {
			if counter++; lives {
				if err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: "n2", Incarnation: "n2-1", Counter: counter, Partition: 7}); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = b.m.Round(t.Context()) // says that it cannot be announced
			b.clock.Advance(time.Second)
			b.beat(t)
		}
	}
	rounds(8)
	b.wire.nowhere, b.wire.silent = false, true // it is there, but has no leader
	rounds(2)
	b.wire.nowhere = true
	rounds(8)
	b.clock.Advance(6 * time.Second) // nobody looked
	rounds(9)
	if n := len(b.fleet.Unannounced()); n != 1 {
		t.Fatalf("%d nodes count as unannounced; the partition was not gone for longer than a node trusts itself", n)
	}
	lives = false
	rounds(20)
	if len(b.wire.fenced) == 0 {
		t.Error("it is not reassigned")
	}
}

// The term is announced to each node once. Until then its work is not reassigned: an older leader may confirm it.
func TestTheTermIsAnnouncedToNewNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if !slices.Equal(b.wire.announced, []int{0}) {
		t.Fatalf("announced on partitions %v", b.wire.announced)
	}
	b.wire.silent = true
	k := fleet.Key{Node: "n2", Incarnation: "n2-1"}
	if err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: k.Node, Incarnation: k.Incarnation, Counter: 1, Partition: 7}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := b.m.Round(t.Context()); err == nil {
			t.Fatal("the round says nothing of it")
		}
		b.clock.Advance(time.Second)
		b.beat(t)
	}
	if len(b.wire.fenced) != 0 {
		t.Fatal("it is reassigned")
	}
	b.wire.silent = false
	b.round(t)
	b.round(t)
	if !slices.Equal(b.wire.announced, []int{0, 7}) {
		t.Errorf("announced on partitions %v", b.wire.announced)
	}
	b.clock.Advance(lostTimeout + time.Millisecond)
	b.beat(t)
	b.round(t)
	b.round(t)
	if snap, _ := b.registry.Snapshot(t.Context()); len(snap.Nodes) != 1 {
		t.Errorf("it is not reassigned: %v", snap.Nodes)
	}
}

// A leader begins its work while the registry is down, and takes the nodes in when it answers.
func TestALeaderBeginsWithoutTheRegistry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registry.SetDown(true)
	b.prime(t)
}
