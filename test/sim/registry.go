package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/memory"
)

// redis is the registry's server: it may forget everything, or go back to an older state under a new run id.
type redis struct {
	world *world
	net   *net
	check *checker
	mem   *memory.Registry
	runs  int
	saved []registry.Node
}

func newRedis(w *world, n *net, c *checker) *redis {
	return &redis{world: w, net: n, check: c, mem: memory.New(trueClock{w})}
}

// save remembers the present state, for restart to go back to.
func (r *redis) save() {
	snap, err := r.mem.Snapshot(background)
	if err != nil {
		panic(err) // the memory registry always answers
	}
	r.saved = snap.Nodes
	for i := range r.saved {
		if n, ok, err := r.mem.Node(background, r.saved[i].ID); ok && err == nil {
			r.saved[i] = n // with its tasks, as they were at that moment: a server keeps the two together
		}
	}
}

// restart begins a new run with what was saved, or with nothing, or with all.
func (r *redis) restart(with []registry.Node) {
	r.runs++
	r.mem = memory.New(trueClock{r.world})
	for range r.runs {
		r.mem.Restart()
	}
	for i := range with {
		if err := r.mem.Beat(background, &with[i]); err != nil {
			panic(err) // it was there before
		}
	}
}

// seamRegistry is Redis as one process sees it. Every method is a turn.
type seamRegistry struct {
	*redis
	process *process
}

var _ registry.Registry = (*seamRegistry)(nil)

func (s *seamRegistry) call(ctx context.Context, what string, do func() error) error {
	err := s.net.call(ctx, registryService, func(bool) error { return do() })
	if errors.Is(err, errSilence) || certain(err) {
		s.world.note(s.process.name, " %s: %v", what, err)
		return fmt.Errorf("%s: %w: %w", what, registry.ErrUnavailable, err)
	}
	return err
}

// Beat implements [registry.Registry].
func (s *seamRegistry) Beat(ctx context.Context, n *registry.Node) error {
	beat := *n
	slices.SortFunc(beat.Tasks, func(a, b registry.HeldTask) int { return cmp.Compare(a.ClaimID, b.ClaimID) }) // it comes off a map
	return s.call(ctx, "beat", func() error {
		err := s.mem.Beat(background, &beat)
		if err == nil {
			s.check.beat(&beat)
		}
		return err
	})
}

// Leave implements [registry.Registry].
func (s *seamRegistry) Leave(ctx context.Context, id, incarnation string) error {
	return s.call(ctx, "leave", func() error { return s.mem.Leave(background, id, incarnation) })
}

// Snapshot implements [registry.Registry].
func (s *seamRegistry) Snapshot(ctx context.Context) (snap registry.Snapshot, err error) {
	err = s.call(ctx, "snapshot", func() error { snap, err = s.mem.Snapshot(background); return err })
	return snap, err
}

// Node implements [registry.Registry].
func (s *seamRegistry) Node(ctx context.Context, id string) (n registry.Node, ok bool, err error) {
	err = s.call(ctx, "node", func() error { n, ok, err = s.mem.Node(background, id); return err })
	return n, ok, err
}

// Evict implements [registry.Registry].
func (s *seamRegistry) Evict(ctx context.Context, id, incarnation string) error {
	return s.call(ctx, "evict", func() error { return s.mem.Evict(background, id, incarnation) })
}

// Ping implements [registry.Registry].
func (s *seamRegistry) Ping(ctx context.Context) error {
	return s.call(ctx, "ping", func() error { return nil })
}

// Close implements [registry.Registry].
func (s *seamRegistry) Close() error { return nil }
