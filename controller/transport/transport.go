// Package transport sends what the leader has for nodes: claims, acknowledgements, commands, fences, its term. The
// dispatcher does not know how they travel; today all nodes are reached over Kafka.
//
// Invariant: an outcome of NotSent is certain. What may reach the node, now or later, is Unknown.
package transport

import (
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// Batch is the claims for one node. Each task is as it was stored with its claim.
type Batch struct {
	To              fleet.Target
	Tasks           []task.Task
	RoundRobinCount int64 // how many tasks ROUND_ROBIN counts for the node after it; 0 = unknown
}

// Outcome is what became of one task of a batch.
type Outcome uint8

const (
	// Sent means that the task is on the bus.
	Sent Outcome = iota
	// NotSent means that the task is certainly not on the bus and will not be.
	NotSent
	// Unknown means that the task may be on the bus, now or later.
	Unknown
)

// Result is what became of a batch: one outcome for each task, and the error of those that were not Sent. A task that
// fits into no event, so that another try would fail as well, is NotSent with its error in Never, by its place in the
// batch. It does not affect the others.
type Result struct {
	Outcomes []Outcome
	Err      error
	Never    map[int]error
}

// Acknowledgement is the claims of one node whose final reports are acknowledged.
type Acknowledgement struct {
	To     fleet.Target
	Claims []string
}

// Commands is commands for claims of one node, and whether it should drain; nil means no change.
type Commands struct {
	To       fleet.Target
	Commands []events.Command
	Drain    *bool
}

// Confirmation is confirmed heartbeats of nodes of one partition, at most events.MaxHeartbeats of them.
type Confirmation struct {
	Partition  int
	Heartbeats []events.ConfirmedHeartbeat
}
