// Package memory is a registry in the process, for `skalds dev`, tests and the simulation.
//
// It keeps every promise of package registry, by the clock that it gets, and shares no memory with its callers. Tests
// can do to it what happens to a server: Restart, Empty, SetDown.
package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
)

// errClosed is what every call after Close returns.
var errClosed = errors.New("memory registry is closed")

// Clock decides when keys expire.
type Clock interface {
	Boot() time.Duration
}

// Registry is a registry in memory. It is safe for concurrent use.
type Registry struct {
	clock Clock

	mu      sync.Mutex
	nodes   map[string]entry    // by node id
	evicted map[string]eviction // by node id
	run     int                 // number of the server's run
	down    bool
	closed  bool
}

// eviction is an incarnation of a node that was evicted.
type eviction struct {
	incarnation string
	expires     time.Duration
}

type entry struct {
	node    registry.Node
	expires time.Duration
}

var _ registry.Registry = (*Registry)(nil)

// New makes an empty registry whose keys expire by the clock's Boot.
func New(clock Clock) *Registry {
	return &Registry{clock: clock, nodes: make(map[string]entry), evicted: make(map[string]eviction), run: 1}
}

// Restart changes the run id and keeps the nodes, as a server does that persists.
func (r *Registry) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run++
}

// Empty drops all nodes, as FLUSHALL does.
func (r *Registry) Empty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.nodes)
	clear(r.evicted)
}

// SetDown lets every call fail with [registry.ErrUnavailable] until it is called with false. Keys go on expiring.
func (r *Registry) SetDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// lock takes the mutex if the registry can serve, and removes what has expired.
func (r *Registry) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("memory registry: %w: %w", registry.ErrUnavailable, err)
		}
		return fmt.Errorf("memory registry: %w", err)
	}
	r.mu.Lock()
	switch {
	case r.closed:
		r.mu.Unlock()
		return errClosed
	case r.down:
		r.mu.Unlock()
		return fmt.Errorf("memory registry was set down: %w", registry.ErrUnavailable)
	}
	now := r.clock.Boot()
	maps.DeleteFunc(r.nodes, func(_ string, e entry) bool { return e.expires <= now })
	maps.DeleteFunc(r.evicted, func(_ string, e eviction) bool { return e.expires <= now })
	return nil
}

// Heartbeat implements [registry.Registry].
func (r *Registry) Heartbeat(ctx context.Context, n *registry.Node) error {
	if err := registry.Check(n); err != nil {
		return fmt.Errorf("heartbeat refused: %w", err)
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if r.evicted[n.ID].incarnation == n.Incarnation {
		return fmt.Errorf("heartbeat of node %s: %w (the leader has evicted incarnation %s)", n.ID, registry.ErrTaken, n.Incarnation)
	}
	have, found := r.nodes[n.ID]
	switch {
	case found && have.node.Incarnation == n.Replaces: // it is dead: its place is free
	case found && have.node.Incarnation != n.Incarnation:
		return fmt.Errorf("heartbeat of node %s: %w (this is incarnation %s, the holder is %q)",
			n.ID, registry.ErrTaken, n.Incarnation, have.node.Incarnation)
	case found && have.node.Counter > n.Counter:
		return fmt.Errorf("heartbeat of node %s: %w (this is number %d, number %d is there)", n.ID, registry.ErrStale, n.Counter, have.node.Counter)
	}
	r.nodes[n.ID] = entry{n.Clone(), r.clock.Boot() + registry.KeyTTL}
	return nil
}

// Leave implements [registry.Registry].
func (r *Registry) Leave(ctx context.Context, id, incarnation string) error {
	if err := registry.Check(&registry.Node{ID: id, Incarnation: incarnation}); err != nil {
		return fmt.Errorf("leave refused: %w", err)
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if r.nodes[id].node.Incarnation == incarnation {
		delete(r.nodes, id)
	}
	return nil
}

// Evict implements [registry.Registry].
func (r *Registry) Evict(ctx context.Context, id, incarnation string) error {
	if err := registry.Check(&registry.Node{ID: id, Incarnation: incarnation}); err != nil {
		return fmt.Errorf("evict refused: %w", err)
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if r.nodes[id].node.Incarnation == incarnation {
		delete(r.nodes, id)
		r.evicted[id] = eviction{incarnation, r.clock.Boot() + registry.KeyTTL}
	}
	return nil
}

// Snapshot implements [registry.Registry]. The nodes are ordered by id.
func (r *Registry) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	if err := r.lock(ctx); err != nil {
		return registry.Snapshot{}, err
	}
	defer r.mu.Unlock()
	s := registry.Snapshot{RunID: "memory-" + strconv.Itoa(r.run), Nodes: make([]registry.Node, 0, len(r.nodes))}
	for _, e := range r.nodes {
		n := e.node
		n.Tasks = nil
		s.Nodes = append(s.Nodes, n.Clone())
	}
	slices.SortFunc(s.Nodes, func(a, b registry.Node) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

// Node implements [registry.Registry].
func (r *Registry) Node(ctx context.Context, id string) (registry.Node, bool, error) {
	if err := r.lock(ctx); err != nil {
		return registry.Node{}, false, err
	}
	defer r.mu.Unlock()
	e, found := r.nodes[id]
	if !found {
		return registry.Node{}, false, nil
	}
	if len(e.node.Tasks) > registry.MaxTasks {
		return registry.Node{}, false, fmt.Errorf("read of node %s: %w: it holds %d entries, at most %d are kept",
			id, registry.ErrIncomplete, len(e.node.Tasks), registry.MaxTasks)
	}
	n := e.node.Clone()
	n.Tasks = registry.Newest(e.node.Tasks)
	return n, true, nil
}

// Ping implements [registry.Registry].
func (r *Registry) Ping(ctx context.Context) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	r.mu.Unlock()
	return nil
}

// Close implements [registry.Registry]. Calls that come later fail.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
