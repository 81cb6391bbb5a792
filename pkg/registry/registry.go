// Package registry is the seam to where nodes say that they are alive: Redis. The implementations are in redis and memory; package
// registrytest holds the suite that each passes.
//
// What every implementation promises:
//
//   - A renewal writes only where the node's key is absent or its own, or of exactly the incarnation that it replaces; otherwise it gives
//     ErrTaken and changes nothing.
//   - A renewal is one round trip. Its answer is the node's proof that the controller can know it to be alive.
//   - Every key expires: a node that stopped beating is gone after KeyTTL.
//   - A snapshot names the run of the server that answered it, so that a restart or a failover is noticed.
package registry

import (
	"context"
	"errors"
	"time"
)

// KeyTTL is how long a node's keys live after its last heartbeat.
const KeyTTL = 30 * time.Second

// ErrTaken says that the node id is registered by another incarnation.
var ErrTaken = errors.New("node id is taken by another incarnation")

// ErrStale says that a newer heartbeat of the same incarnation was written before; the older one changed nothing.
var ErrStale = errors.New("a newer heartbeat was already written")

// ErrIncomplete says that a node's task list cannot be read as a whole now, so that a task's absence from it means nothing.
var ErrIncomplete = errors.New("task list is incomplete")

// ErrUnavailable is in the chain of every error that says that the registry cannot be reached or does not answer in time.
var ErrUnavailable = errors.New("registry unavailable")

// Snapshot is all nodes at one time.
type Snapshot struct {
	RunID string // names the run of the server, of all shards together; changes at restart and failover
	Nodes []Node
}

// Registry is everything.
type Registry interface {
	// Heartbeat registers or renews. It gives ErrTaken if another incarnation holds the id.
	Heartbeat(ctx context.Context, n *Node) error
	// Leave removes the node's keys, if they are this incarnation's.
	Leave(ctx context.Context, id, incarnation string) error
	// Evict removes the node's keys, if they are this incarnation's, and refuses its heartbeats with ErrTaken for KeyTTL.
	Evict(ctx context.Context, id, incarnation string) error
	// Snapshot reads all nodes, without their task lists.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Node reads one node with its task list. It reports false if there is none.
	Node(ctx context.Context, id string) (Node, bool, error)
	// Ping says whether the registry answers.
	Ping(ctx context.Context) error
	// Close frees what the registry holds. It is idempotent.
	Close() error
}
