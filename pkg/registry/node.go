package registry

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/skalds-go/skalds/pkg/task"
)

// State is whether a node takes work.
type State string

const (
	// Online nodes take work.
	Online State = "online"
	// Draining nodes finish the work that they have.
	Draining State = "draining"
)

// Node modes.
const (
	// ModeNode takes what the controller assigns.
	ModeNode = "node"
	// ModeEdge runs its own list and is never assigned anything.
	ModeEdge = "edge"
)

// Node is one heartbeat of a node: all that the node reports about itself. It is the same struct in Redis, over Kafka
// and in the answers of the REST API. A field that is added here is written, read, checked and shown everywhere; the
// tag json names it, the tag was has the name that older nodes use in Redis, and the tag doc describes it in the API.
type Node struct {
	ID          string `json:"id" doc:"Id of the node."`
	Incarnation string `json:"incarnation" doc:"Unique id of this run of the node process."`
	Counter     int64  `json:"counter" doc:"Number of this heartbeat. It grows with each heartbeat of the incarnation."`
	// Term is the highest leader's term that the node has seen.
	Term int64 `json:"term" doc:"The highest leader's term that the node has seen."`
	// RoundRobinCount is the last count for ROUND_ROBIN that the leaders of the terms below Term sent to this
	// incarnation. So it does not change while Term does not, whatever the present leader sends. 0 = none.
	RoundRobinCount int64 `json:"roundRobinCount" was:"turn" doc:"How many tasks ROUND_ROBIN counts for the node, by the leaders before the term; 0 = unknown."`

	Mode     string            `json:"mode" doc:"node takes what the controller assigns; edge is never assigned anything."`
	State    State             `json:"state" doc:"online, or draining: it takes no more work."`
	Classes  []string          `json:"classes" nullable:"false" doc:"The classes of tasks that it runs."`
	Labels   map[string]string `json:"labels"`
	Capacity int               `json:"capacity" doc:"How many slots it has; a task takes one, or as many as its slots say."`
	Prefetch int               `json:"prefetch" doc:"How many slots more it may promise to queued tasks."`
	Running  int               `json:"running" doc:"Tasks."`
	Queued   int               `json:"queued" doc:"Tasks."`
	Received int64             `json:"received" doc:"Claims taken from the bus since the incarnation began."`
	Finished int64             `json:"finished" doc:"Claims that ended since the incarnation began, in any way."`

	Partition   int     `json:"partition" doc:"The partition it reads."`
	Protocol    int     `json:"protocol" doc:"Major version of the events it reads."`
	Address     string  `json:"address"`
	Version     string  `json:"version"`
	CPU         float64 `json:"cpu" doc:"Cores used by the process, averaged since the heartbeat before."`
	Memory      int64   `json:"memory" doc:"Bytes the process holds."`
	CPUs        int     `json:"cpus" doc:"Cores that the process may use; 0 if unknown."`
	MemoryTotal int64   `json:"memoryTotal" doc:"Bytes that the process may use, of the machine or of its cgroup; 0 if unknown."`
	StartedAt   int64   `json:"startedAt" doc:"Epoch milliseconds, by the node's clock."`

	SlotsRunning    int            `json:"slotsRunning" doc:"Slots that are taken, also by tasks that have ended and whose handlers do not return."`
	SlotsQueued     int            `json:"slotsQueued" doc:"Slots that the queued tasks are going to take."`
	CapacityByClass map[string]int `json:"capacityByClass,omitempty" doc:"The most slots that a class takes; one that is not named may take all."`
	RunningByClass  map[string]int `json:"runningByClass,omitempty" doc:"Slots by class, taken and queued."`

	Replaces string `json:"replaces,omitempty" doc:"An earlier incarnation of the node that is known to be dead."`
	Crashed  bool   `json:"crashed,omitempty" doc:"Whether the replaced incarnation ended because its process crashed."`

	// Tasks has a key of its own in Redis, and is not sent over Kafka. A snapshot has none.
	Tasks []HeldTask `json:"tasks,omitempty" nullable:"false" doc:"The claims it holds; only in the answer for one node."`
}

// HeldTask is one claim that a node holds, or whose final report is not acknowledged yet.
type HeldTask struct {
	ID      string    `json:"id,omitempty" required:"true"`
	Attempt int64     `json:"attempt"`
	ClaimID string    `json:"claimId"`
	State   task.Kind `json:"state" doc:"queued, or the newest report: started, progress, finished, ..."` // empty = queued
}

// The largest values that a heartbeat can hold. A node that reports more is not believed.
const (
	// MaxCapacity is the most slots of a node, and the most that it may queue beyond them.
	MaxCapacity = task.MaxSlots
	// MaxClasses is how many classes one node has handlers for.
	MaxClasses = 4096

	maxHeld   = 2*MaxCapacity + MaxClasses // running or queued, with some margin for abandoned handlers
	maxCPUs   = 1_000_000
	maxMemory = 1 << 60 // bytes
	maxCount  = 1 << 60 // leaves room to count on
)

// highest returns the largest value that the number named in JSON may have. None may be negative.
func highest(name string) int64 {
	switch name {
	case "capacity", "prefetch":
		return MaxCapacity
	case "running", "queued", "slotsRunning", "slotsQueued":
		return maxHeld
	case "cpu", "cpus":
		return maxCPUs
	case "memory", "memoryTotal":
		return maxMemory
	case "roundRobinCount":
		return maxCount
	case "partition", "protocol":
		return math.MaxInt32
	default:
		return math.MaxInt64
	}
}

// Slots returns how many slots are running and how many are queued. A node that is older than slots reports none: each
// of its tasks takes one.
func (n *Node) Slots() (running, queued int) {
	return max(n.SlotsRunning, n.Running), max(n.SlotsQueued, n.Queued)
}

// Clone returns a copy of n that shares no memory with it.
func (n *Node) Clone() Node {
	c := *n
	c.Classes, c.Labels, c.Tasks = slices.Clone(n.Classes), maps.Clone(n.Labels), slices.Clone(n.Tasks)
	c.CapacityByClass, c.RunningByClass = maps.Clone(n.CapacityByClass), maps.Clone(n.RunningByClass)
	return c
}

// Newest returns the list as a registry keeps it: by task id, with only the highest attempt of each task. A node can
// hold an old claim of a task, whose end is not acknowledged, beside the present one; only the present one counts. The
// argument is not changed.
func Newest(tasks []HeldTask) []HeldTask {
	list := slices.Clone(tasks)
	slices.SortFunc(list, func(a, b HeldTask) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Attempt, a.Attempt))
	})
	return slices.CompactFunc(list, func(a, b HeldTask) bool { return a.ID == b.ID })
}
