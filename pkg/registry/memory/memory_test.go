package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(*testing.T) registrytest.Server {
		c := clocktest.New(time.UnixMilli(0))
		r := memory.New(c)
		return registrytest.Server{
			Registry: r,
			Advance:  c.Advance,
			Restart:  r.Restart,
			Empty:    r.Empty,
			SetDown:  r.SetDown,
		}
	})
}

// Keys are as old as the machine's clock says, suspend included, and no older than that when the wall clock jumps.
func TestExpiryGoesByBoot(t *testing.T) {
	t.Parallel()
	c := clocktest.New(time.UnixMilli(0))
	r := memory.New(c)
	ctx := context.Background()
	if err := r.Heartbeat(ctx, &registry.Node{ID: "n1", Incarnation: "i"}); err != nil {
		t.Fatal(err)
	}
	c.StepWall(24 * time.Hour)
	if _, found, err := r.Node(ctx, "n1"); err != nil || !found {
		t.Errorf("after a jump of the wall clock: found %v, error %v", found, err)
	}
	c.Suspend(registry.KeyTTL)
	if _, found, err := r.Node(ctx, "n1"); err != nil || found {
		t.Errorf("after a suspend: found %v, error %v", found, err)
	}
}

func ExampleNew() {
	r := memory.New(clock.System{})
	ctx := context.Background()
	_ = r.Heartbeat(ctx, &registry.Node{ID: "n1", Incarnation: "a", Counter: 1, Capacity: 16})
	fmt.Println(r.Heartbeat(ctx, &registry.Node{ID: "n1", Incarnation: "b", Counter: 1}))
	s, _ := r.Snapshot(ctx)
	fmt.Println(len(s.Nodes), s.Nodes[0].Capacity)
	// Output:
	// heartbeat of node n1: node id is taken by another incarnation (this is incarnation b, the holder is "a")
	// 1 16
}
