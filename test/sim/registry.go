package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/memory"
)

// redis is the registry's server: it may forget everything, or go back to an older state under a new run id. It may
// have a replica, which it tells of its writes a little later, and which may take its place.
type redis struct {
	world *world
	net   *net
	check *checker
	mem   *memory.Registry
	runs  int // servers' runs until now
	saved []registry.Node

	wait    int // REDIS_WAIT_REPLICAS
	replica *memory.Registry
	broken  bool // the replica does not follow
	writes  int  // of the master
	have    int  // of them, those that the replica has
	haveAt  time.Duration
	old     *memory.Registry  // the master before the failover
	astray  map[*process]bool // who still talks to it
}

func newRedis(w *world, n *net, c *checker, wait int) *redis {
	r := &redis{world: w, net: n, check: c, wait: wait, broken: true}
	r.mem = r.server()
	r.follow()
	return r
}

// server is a new run of a server.
func (r *redis) server() *memory.Registry {
	mem := memory.New(trueClock{r.world})
	for range r.runs {
		mem.Restart()
	}
	r.runs++
	return mem
}

// wrote has the replica do what the master has done.
func (r *redis) wrote(do func(mem *memory.Registry)) {
	r.writes++
	if r.wait == 0 || r.broken {
		return
	}
	serial, replica := r.writes, r.replica
	r.haveAt = max(r.haveAt, r.world.now+r.world.between(0, 4*time.Millisecond))
	r.world.after(r.haveAt-r.world.now, func() {
		if r.replica == replica && !r.broken {
			do(replica)
			r.have = serial
		}
	})
}

// follow gives the master a replica that has all that it has, and ends that somebody talks to another one.
func (r *redis) follow() {
	r.old, r.astray = nil, nil
	if r.wait == 0 {
		return
	}
	r.save()
	r.replica = r.server()
	load(r.replica, r.saved)
	r.have, r.broken = r.writes, false
}

// failover makes the replica the master.
func (r *redis) failover(astray map[*process]bool) {
	r.old, r.astray = r.mem, astray
	r.mem, r.replica, r.broken = r.replica, nil, true
	r.writes = r.have // the others are lost
}

// of is the server that a process talks to.
func (r *redis) of(p *process) *memory.Registry {
	if r.astray[p] {
		return r.old
	}
	return r.mem
}

// caughtUp waits until the replica has so many writes of the server that the process talks to.
func (s *seamRegistry) caughtUp(mem *memory.Registry, writes int) error {
	if s.wait == 0 || s.noWait {
		return nil
	}
	there := func() bool { return s.mem == mem && s.have >= writes && s.replica != nil && !s.broken }
	for until := s.world.now + 100*time.Millisecond; s.world.now < until && s.of(s.process) == mem; {
		if there() {
			return nil
		}
		s.world.park(s.world.now+2*time.Millisecond, nil)
	}
	return fmt.Errorf("the replica does not follow: %w", registry.ErrUnavailable)
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
	r.mem = r.server()
	load(r.mem, with)
	if r.wait > 0 && !r.broken {
		r.follow()
	}
}

func load(mem *memory.Registry, nodes []registry.Node) {
	for i := range nodes {
		if err := mem.Heartbeat(background, &nodes[i]); err != nil {
			panic(err) // it was there before
		}
	}
}

// seamRegistry is Redis as one process sees it. Every method is a turn.
type seamRegistry struct {
	*redis
	process *process
	noWait  bool
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

// Heartbeat implements [registry.Registry].
func (s *seamRegistry) Heartbeat(ctx context.Context, n *registry.Node) error {
	beat := *n
	slices.SortFunc(beat.Tasks, func(a, b registry.HeldTask) int { return cmp.Compare(a.ClaimID, b.ClaimID) }) // it comes off a map
	var mem *memory.Registry
	writes := 0
	err := s.call(ctx, "beat", func() error {
		mem = s.of(s.process)
		err := mem.Heartbeat(background, &beat)
		if err == nil {
			s.check.heartbeat(&beat)
			s.wrote(mem, func(m *memory.Registry) { _ = m.Heartbeat(background, &beat) })
		}
		writes = s.writes
		return err
	})
	if err == nil {
		err = s.caughtUp(mem, writes)
	}
	return err
}

// wrote has the replica of the process's server do what that has done.
func (s *seamRegistry) wrote(mem *memory.Registry, do func(*memory.Registry)) {
	if mem == s.mem {
		s.redis.wrote(do)
	}
}

// Leave implements [registry.Registry].
func (s *seamRegistry) Leave(ctx context.Context, id, incarnation string) error {
	return s.change(ctx, "leave", func(mem *memory.Registry) error { return mem.Leave(background, id, incarnation) })
}

// Evict implements [registry.Registry].
func (s *seamRegistry) Evict(ctx context.Context, id, incarnation string) error {
	return s.change(ctx, "evict", func(mem *memory.Registry) error {
		s.check.evicts(incarnation)
		return mem.Evict(background, id, incarnation)
	})
}

func (s *seamRegistry) change(ctx context.Context, what string, do func(*memory.Registry) error) error {
	return s.call(ctx, what, func() error {
		mem := s.of(s.process)
		err := do(mem)
		s.wrote(mem, func(m *memory.Registry) { _ = do(m) })
		return err
	})
}

// Snapshot implements [registry.Registry]. It begins with a write that the replicas must have: else they may follow
// another server.
func (s *seamRegistry) Snapshot(ctx context.Context) (snap registry.Snapshot, err error) {
	if s.wait > 0 {
		mem, writes := s.of(s.process), 0
		err := s.call(ctx, "probe", func() error {
			mem = s.of(s.process)
			s.wrote(mem, func(*memory.Registry) {})
			writes = s.writes
			return nil
		})
		if err == nil {
			err = s.caughtUp(mem, writes)
		}
		if err != nil {
			return snap, err
		}
	}
	err = s.call(ctx, "snapshot", func() error { snap, err = s.of(s.process).Snapshot(background); return err })
	return snap, err
}

// Node implements [registry.Registry].
func (s *seamRegistry) Node(ctx context.Context, id string) (n registry.Node, ok bool, err error) {
	err = s.call(ctx, "node", func() error { n, ok, err = s.of(s.process).Node(background, id); return err })
	return n, ok, err
}

// Ping implements [registry.Registry].
func (s *seamRegistry) Ping(ctx context.Context) error {
	return s.call(ctx, "ping", func() error { return nil })
}

// Close implements [registry.Registry].
func (s *seamRegistry) Close() error { return nil }
