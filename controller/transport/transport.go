// Package transport is how the leader's words reach a node. The dispatcher does not know how an assignment travels; today all nodes
// are reached over Kafka.
//
// Invariant: an outcome of NotSent is certain. What may have reached the node, now or later, is Unknown.
package transport

import (
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// Batch is claims for one node. Each task's document is as its claim left it.
type Batch struct {
	To              fleet.Target
	Tasks           []task.Task
	RoundRobinCount int64 // how many tasks ROUND_ROBIN counts for the node after it; 0 = not said
}

// Outcome is what became of one task of a batch.
type Outcome uint8

const (
	// Sent tasks are on the bus.
	Sent Outcome = iota
	// NotSent tasks are certainly not on the bus and will not come there.
	NotSent
	// Unknown tasks may be on the bus.
	Unknown
)

// Result is what became of a batch: one outcome for each task, and the error of those that are not Sent. Of a task that fits into no event,
// and so would fare no better at another try, the error is in Never, by its place in the batch; it is NotSent, and the others are as without it.
type Result struct {
	Outcomes []Outcome
	Err      error
	Never    map[int]error
}

// Acknowledgement is claims of one node whose final reports are settled.
type Acknowledgement struct {
	To     fleet.Target
	Claims []string
}

// Commands is commands for claims of one node, and whether it is to drain; nil = nothing about that.
type Commands struct {
	To       fleet.Target
	Commands []events.Command
	Drain    *bool
}

// Confirmation is heartbeats of nodes of one partition that are confirmed, at most events.MaxBeats of them.
type Confirmation struct {
	Partition  int
	Heartbeats []events.ConfirmedHeartbeat
}
