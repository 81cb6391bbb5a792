// Package registry is the interface to the place where nodes report that they are alive: Redis. It has the heartbeat,
// [Node], and the rules for it. The implementations are in packages redis and memory; package registrytest has the
// suite that both pass.
//
// Every implementation promises:
//
//   - A heartbeat is written only if the node's key is absent, or its own, or belongs to the incarnation that it
//     replaces. Otherwise Heartbeat returns ErrTaken and changes nothing.
//   - A heartbeat is one round trip. The answer proves to the node that the controller can see that it is alive.
//   - Every key expires: a node that sends no more heartbeats is gone after KeyTTL.
//   - A snapshot names the run of the server that answered it, so that a restart or a failover is noticed.
package registry

import (
	"context"
	"errors"
	"time"
)

// KeyTTL is how long a node's keys live after its last heartbeat.
const KeyTTL = 30 * time.Second

// ErrTaken means that the node id is registered by another incarnation.
var ErrTaken = errors.New("node id is taken by another incarnation")

// ErrStale means that a newer heartbeat of the same incarnation was written before. The older one changed nothing.
var ErrStale = errors.New("a newer heartbeat was already written")

// ErrIncomplete means that a node's task list cannot be read as a whole now. A task that is not in it may still be
// there.
var ErrIncomplete = errors.New("task list is incomplete")

// ErrUnavailable is in the chain of every error by which the registry cannot be reached or does not answer in time.
var ErrUnavailable = errors.New("registry unavailable")

// Snapshot is all nodes at one time.
type Snapshot struct {
	RunID string // names the run of the server, of all shards together; changes at restart and failover
	Nodes []Node
}

// Registry is where nodes register and controllers look. It is safe for concurrent use.
type Registry interface {
	// Heartbeat registers the node or renews its registration. It returns ErrTaken if another incarnation holds the id,
	// and ErrStale if a newer heartbeat was written before.
	Heartbeat(ctx context.Context, n *Node) error
	// Leave removes the node's keys, if they are this incarnation's.
	Leave(ctx context.Context, id, incarnation string) error
	// Evict removes the node's keys, if they are this incarnation's, and refuses its heartbeats with ErrTaken for
	// KeyTTL.
	Evict(ctx context.Context, id, incarnation string) error
	// Snapshot reads all nodes, without their task lists.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Node reads one node with its task list. It reports false if there is none.
	Node(ctx context.Context, id string) (Node, bool, error)
	// Ping returns nil if the registry answers.
	Ping(ctx context.Context) error
	// Close frees what the registry holds. It is idempotent.
	Close() error
}
