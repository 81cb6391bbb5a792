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

	"github.com/skalds-go/skalds/pkg/task"
)

// KeyTTL is how long a node's keys live after its last heartbeat.
const KeyTTL = 30 * time.Second

// ErrTaken says that the node id is registered by another incarnation.
var ErrTaken = errors.New("node id is taken by another incarnation")

// ErrUnavailable is in the chain of every error that says that the registry cannot be reached or does not answer in time.
var ErrUnavailable = errors.New("registry unavailable")

// State is what a node says of itself.
type State string

const (
	// Online nodes take work.
	Online State = "online"
	// Draining nodes finish what they have.
	Draining State = "draining"
)

// Node modes.
const (
	// ModeNode takes what the controller assigns.
	ModeNode = "node"
	// ModeEdge runs its own list and is never assigned anything.
	ModeEdge = "edge"
)

// Node is one heartbeat.
type Node struct {
	ID          string            `json:"id"`
	Incarnation string            `json:"incarnation"`
	Counter     int64             `json:"counter"` // +1 at every heartbeat
	Mode        string            `json:"mode"`
	State       State             `json:"state"`
	Classes     []string          `json:"classes"`
	Labels      map[string]string `json:"labels"`
	Capacity    int               `json:"capacity"`
	Prefetch    int               `json:"prefetch"`
	Running     int               `json:"running"`  // tasks
	Queued      int               `json:"queued"`   // tasks
	Received    int64             `json:"received"` // claims taken from the bus since the incarnation began
	Finished    int64             `json:"finished"` // claims that ended since then, in any way
	Partition   int               `json:"partition"`
	Protocol    int               `json:"protocol"` // major version of the events it reads
	Address     string            `json:"address"`
	Version     string            `json:"version"`
	CPU         float64           `json:"cpu"`       // cores used by the process, averaged since the last heartbeat
	Memory      int64             `json:"memory"`    // bytes the process holds
	StartedAt   int64             `json:"startedAt"` // epoch ms, by its clock
	Replaces    string            `json:"replaces"`  // an incarnation of this node that is known to be dead; empty = none
	Crashed     bool              `json:"crashed"`   // Replaces died with its process, which nobody had told to stop
	Term        int64             `json:"term"`      // the highest leader's term that the node has seen
	Tasks       []HeldTask        `json:"-"`         // in a key of its own; nil in a snapshot

	// RoundRobinCount is what the leaders of the terms below Term had last told this incarnation that ROUND_ROBIN counts for it. So it does not change
	// while Term does not, whatever the present leader tells. 0 = nothing.
	RoundRobinCount int64 `json:"turn"`

	SlotsRunning    int            `json:"slotsRunning"`    // slots that handlers hold, also those whose claims have ended and that do not return
	SlotsQueued     int            `json:"slotsQueued"`     // slots that the queued claims are going to take
	CapacityByClass map[string]int `json:"capacityByClass"` // the most slots that a class takes; one without an entry has the node's capacity
	RunningByClass  map[string]int `json:"runningByClass"`  // slots by class, running and queued; classes that have none are left out
	CPUs            int            `json:"cpus"`            // cores that the process may use; 0 = unknown
	MemoryTotal     int64          `json:"memoryTotal"`     // bytes that the process may use: of the machine, or of its cgroup; 0 = unknown
}

// Slots is how many slots are running and how many are queued. A node that is older than slots says none: there each task is one.
func (n *Node) Slots() (running, queued int) {
	return max(n.SlotsRunning, n.Running), max(n.SlotsQueued, n.Queued)
}

// HeldTask is one claim that a node holds, or whose end is not yet settled.
type HeldTask struct {
	ID      string    `json:"id"`
	Attempt int64     `json:"attempt"`
	ClaimID string    `json:"claimId"`
	State   task.Kind `json:"state"` // the newest report's kind; empty = queued
}

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
