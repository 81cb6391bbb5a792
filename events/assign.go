package events

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/skalds-go/skalds/pkg/task"
)

// Assign is the value of task.assign: claims for one incarnation of one node, and which of its claims are settled. Without a
// recipient it announces the leader's term to every node of the partition, and confirms heartbeats of some of them.
//
// The first seven fields are the Python Skalds' TaskEvent.
type Assign struct {
	ID             string   `json:"id"` // the first task's id
	Title          text     `json:"title"`
	Initiator      text     `json:"initiator"` // run id of the controller
	Recipient      text     `json:"recipient"` // node id
	CreateDateTime int64    `json:"createDateTime"`
	UpdateDateTime int64    `json:"updateDateTime"`
	TaskIDs        []string `json:"taskIds"`

	Version      int                  `json:"version"`
	Term         int64                `json:"term"`
	Incarnation  string               `json:"incarnation,omitempty"`
	Tasks        []AssignedTask       `json:"tasks,omitempty"`
	Acknowledged []string             `json:"acknowledged,omitempty"` // claim ids whose final report is stored, or came too late for good
	Heartbeats   []ConfirmedHeartbeat `json:"heartbeats,omitempty"`   // heartbeats that came over task.status and are confirmed

	// RoundRobinCount is how many tasks ROUND_ROBIN counts for the incarnation after this event; 0 = not said. The node's heartbeats tell it to the next
	// leader, see [Beat]. When the event is split, each value has it: what is claimed will be sent, if not by this leader.
	RoundRobinCount int64 `json:"roundRobinCount,omitempty"`
}

// ConfirmedHeartbeat confirms one heartbeat of one incarnation, which trusts itself again from the time on at which it sent it.
type ConfirmedHeartbeat struct {
	Incarnation string `json:"incarnation"`
	Counter     int64  `json:"counter"`
}

// AssignedTask is one claim with all that the node needs to run it.
type AssignedTask struct {
	ID                 string          `json:"id"`
	ClassName          string          `json:"className"`
	Attempt            int64           `json:"attempt"`
	ClaimID            string          `json:"claimId"`
	Priority           int             `json:"priority,omitempty"`
	CreateDateTime     int64           `json:"createDateTime"`
	DeadlineDateTime   int64           `json:"deadlineDateTime,omitempty"` // 0 = none
	TimeoutMs          int64           `json:"timeoutMs,omitempty"`        // of this run; 0 = none
	Slots              int             `json:"slots,omitempty"`            // of the node's capacity that it takes; 0 = 1, see Width
	Attachments        json.RawMessage `json:"attachments,omitempty"`
	AttachmentsVersion int64           `json:"attachmentsVersion,omitempty"`
}

// Width is how many slots of its node the claim takes, at least one.
func (t *AssignedTask) Width() int { return max(t.Slots, 1) }

// Assigned is what a node is told of t, whose claim is its present one.
func Assigned(t *task.Task) AssignedTask {
	a := AssignedTask{ID: t.ID, ClassName: t.ClassName, Attempt: t.Attempt, ClaimID: t.ClaimID, Priority: t.Priority,
		CreateDateTime: t.CreateDateTime, DeadlineDateTime: t.DeadlineDateTime, TimeoutMs: t.TimeoutMs,
		Attachments: t.Attachments, AttachmentsVersion: t.AttachmentsVersion}
	if width := t.Width(); width > 1 {
		a.Slots = width
	}
	return a
}

// Encoded is one record's key and value, and which items of the call it carries.
type Encoded struct {
	Key, Value []byte
	From, To   int // the items [From, To)
}

// maxAcknowledged and MaxHeartbeats bound the settled claims and the confirmed heartbeats of one value, so that they never need splitting by size.
const (
	maxAcknowledged = 2000
	MaxHeartbeats   = 1000
)

// EncodeAssign encodes a, split by tasks so that no value is longer than limit bytes. All the settled claims and heartbeats are in the first value.
// An announcement without tasks and settled claims is one value.
func EncodeAssign(a Assign, limit int) ([]Encoded, error) {
	if len(a.Acknowledged) > maxAcknowledged {
		return nil, fmt.Errorf("%s: %d settled claims in one event, %d at most: %w", TopicAssign, len(a.Acknowledged), maxAcknowledged, ErrTooLarge)
	}
	if len(a.Heartbeats) > MaxHeartbeats {
		return nil, fmt.Errorf("%s: %d heartbeats in one event, %d at most: %w", TopicAssign, len(a.Heartbeats), MaxHeartbeats, ErrTooLarge)
	}
	tasks := a.Tasks
	raw := make([]json.RawMessage, len(tasks))
	for i := range tasks {
		b, err := marshal(&tasks[i])
		if err != nil {
			return nil, fmt.Errorf("%s: task %s: %w", TopicAssign, tasks[i].ID, err)
		}
		raw[i] = b
	}
	a.Version = Version
	a.Tasks, a.TaskIDs, a.ID = nil, []string{}, keyOf(a)
	head, err := marshal(&a)
	if err != nil {
		return nil, err
	}
	// Each task stands twice in a value: whole in tasks, by its id in taskIds. The first id stands a third time, as the event's.
	const idOverhead, listOverhead = 3, 16 // quotes and comma; ,"tasks":[]
	sizes, longest := make([]int, len(tasks)), 0
	for i := range tasks {
		id := escapedLen(tasks[i].ID)
		longest = max(longest, id)
		sizes[i] = len(raw[i]) + id + idOverhead
	}
	var out []Encoded
	err = split(sizes, limit-len(head)-listOverhead-longest, func(from, to int) error {
		part := wireAssign{Assign: a, Tasks: raw[from:to]}
		part.TaskIDs = make([]string, 0, to-from)
		for _, t := range tasks[from:to] {
			part.TaskIDs = append(part.TaskIDs, t.ID)
		}
		if from < to {
			part.ID = tasks[from].ID
		}
		value, err := marshal(&part)
		if err != nil {
			return err
		}
		if err := fits(TopicAssign, len(value), limit); err != nil {
			return err
		}
		out = append(out, Encoded{Key: []byte(part.ID), Value: value, From: from, To: to})
		a.Acknowledged, a.Heartbeats = nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TopicAssign, err)
	}
	return out, nil
}

// wireAssign is Assign with the tasks encoded already.
type wireAssign struct {
	Assign
	Tasks []json.RawMessage `json:"tasks,omitempty"`
}

// keyOf names an event that carries no task.
func keyOf(a Assign) string {
	for _, s := range []string{a.ID, string(a.Recipient), string(a.Initiator)} {
		if s != "" {
			return s
		}
	}
	return TopicAssign
}

// DecodeAssign reads a value of task.assign.
func DecodeAssign(value []byte) (Assign, error) {
	var w struct { // with the names that writers before 0.1 used
		Assign
		Settled []string             `json:"settled"`
		Beats   []ConfirmedHeartbeat `json:"beats"`
		Turn    int64                `json:"turn"`
	}
	if err := unmarshal(TopicAssign, value, &w, &w.Version); err != nil {
		return Assign{}, err
	}
	a := w.Assign
	a.Acknowledged, a.Heartbeats = append(a.Acknowledged, w.Settled...), append(a.Heartbeats, w.Beats...)
	a.RoundRobinCount = cmp.Or(a.RoundRobinCount, w.Turn)
	for i := range a.Tasks {
		if t := &a.Tasks[i]; t.ID == "" || t.ClassName == "" || t.ClaimID == "" || t.Attempt < 1 {
			return Assign{}, fmt.Errorf("%s: %w: task %d (id %q, className %q, claimId %q, attempt %d) lacks one of these",
				TopicAssign, ErrMalformed, i, t.ID, t.ClassName, t.ClaimID, t.Attempt)
		}
	}
	if len(a.Tasks) > 0 && (a.Recipient == "" || a.Incarnation == "") {
		return Assign{}, fmt.Errorf("%s: %w: tasks without recipient and incarnation", TopicAssign, ErrMalformed)
	}
	return a, nil
}

// SetRecipient addresses the event to an incarnation of a node.
func (a *Assign) SetRecipient(node, incarnation string) {
	a.Recipient, a.Incarnation = text(node), incarnation
}

// SetSender names the controller that writes the event, and its term.
func (a *Assign) SetSender(controller string, term int64) {
	a.Initiator, a.Term = text(controller), term
}
