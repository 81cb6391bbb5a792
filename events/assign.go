package events

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/skalds-go/skalds/pkg/task"
)

// Assign is the value of task.assign: claims for one incarnation of one node, and which of its final reports are
// acknowledged. Without a recipient it announces the leader's term to every node of the partition, and confirms
// heartbeats of some of them.
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
	Acknowledged []string             `json:"acknowledged,omitempty"` // claim ids whose final report is stored, or will never be needed
	Heartbeats   []ConfirmedHeartbeat `json:"heartbeats,omitempty"`   // confirms heartbeats that came over task.status

	// RoundRobinCount is how many tasks ROUND_ROBIN counts for the incarnation after this event; 0 = unknown. The
	// node's heartbeats tell it to the next leader, see [registry.Node]. If the event is split, each value has the
	// whole count: what is claimed will be sent, if not by this leader.
	RoundRobinCount int64 `json:"roundRobinCount,omitempty"`
}

// ConfirmedHeartbeat confirms one heartbeat of one incarnation. The incarnation's trust then counts from the time at
// which it sent it.
type ConfirmedHeartbeat struct {
	Incarnation string `json:"incarnation"`
	Counter     int64  `json:"counter"`
}

// AssignedTask is one claim, with everything that the node needs to run it.
type AssignedTask struct {
	ID                 string          `json:"id"`
	ClassName          string          `json:"className"`
	Attempt            int64           `json:"attempt"`
	ClaimID            string          `json:"claimId"`
	Priority           int             `json:"priority,omitempty"`
	CreateDateTime     int64           `json:"createDateTime"`
	DeadlineDateTime   int64           `json:"deadlineDateTime,omitempty"` // 0 = none
	TimeoutMs          int64           `json:"timeoutMs,omitempty"`        // of this run; 0 = none
	Slots              int             `json:"slots,omitempty"`            // of the node's capacity; 0 means 1, see Width
	Attachments        json.RawMessage `json:"attachments,omitempty"`
	AttachmentsVersion int64           `json:"attachmentsVersion,omitempty"`
}

// Width returns how many slots of its node the claim takes, at least one.
func (t *AssignedTask) Width() int { return max(t.Slots, 1) }

// Assigned returns the present claim of t as it is sent to a node.
func Assigned(t *task.Task) AssignedTask {
	a := AssignedTask{ID: t.ID, ClassName: t.ClassName, Attempt: t.Attempt, ClaimID: t.ClaimID, Priority: t.Priority,
		CreateDateTime: t.CreateDateTime, DeadlineDateTime: t.DeadlineDateTime, TimeoutMs: t.TimeoutMs,
		Attachments: t.Attachments, AttachmentsVersion: t.AttachmentsVersion}
	if width := t.Width(); width > 1 {
		a.Slots = width
	}
	return a
}

// Encoded is the key and value of one record, and which items of the call it carries.
type Encoded struct {
	Key, Value []byte
	From, To   int // the items [From, To)
}

// maxAcknowledged and MaxHeartbeats bound the acknowledged claims and the confirmed heartbeats of one value, so that
// they never need splitting.
const (
	maxAcknowledged = 2000
	MaxHeartbeats   = 1000
)

// EncodeAssign encodes a, split by tasks so that no value is longer than limit bytes. All acknowledged claims and
// confirmed heartbeats are in the first value. Without tasks there is one value.
func EncodeAssign(a Assign, limit int) ([]Encoded, error) {
	if len(a.Acknowledged) > maxAcknowledged {
		return nil, fmt.Errorf("%s: %d acknowledged claims in one event, %d at most: %w", TopicAssign, len(a.Acknowledged), maxAcknowledged, ErrTooLarge)
	}
	if len(a.Heartbeats) > MaxHeartbeats {
		return nil, fmt.Errorf("%s: %d heartbeats in one event, %d at most: %w", TopicAssign, len(a.Heartbeats), MaxHeartbeats, ErrTooLarge)
	}
	tasks := a.Tasks
	raw, sizes, err := encodeEach(TopicAssign, tasks, func(t *AssignedTask) string { return t.ID })
	if err != nil {
		return nil, err
	}
	a.Version = Version
	a.Tasks, a.TaskIDs, a.ID = nil, []string{}, keyOf(a)
	head, err := marshal(&a)
	if err != nil {
		return nil, err
	}
	// Each task is in a value twice: whole in tasks, by its id in taskIds. The first id is there a third time, as the
	// event's.
	const idOverhead, listOverhead = 3, 16 // quotes and comma; ,"tasks":[]
	longest := 0
	for i := range tasks {
		id := escapedLen(tasks[i].ID)
		longest = max(longest, id)
		sizes[i] += id + idOverhead
	}
	return encodeParts(TopicAssign, sizes, len(head)+listOverhead+longest, limit, func(from, to int) (string, any) {
		part := wireAssign{Assign: a, Tasks: raw[from:to]}
		part.TaskIDs = make([]string, 0, to-from)
		for _, t := range tasks[from:to] {
			part.TaskIDs = append(part.TaskIDs, t.ID)
		}
		if from < to {
			part.ID = tasks[from].ID
		}
		a.Acknowledged, a.Heartbeats = nil, nil
		return part.ID, &part
	})
}

// wireAssign is Assign with encoded tasks.
type wireAssign struct {
	Assign
	Tasks []json.RawMessage `json:"tasks,omitempty"`
}

// keyOf returns the key of an event without tasks.
func keyOf(a Assign) string {
	for _, s := range []string{a.ID, string(a.Recipient), string(a.Initiator)} {
		if s != "" {
			return s
		}
	}
	return TopicAssign
}

// DecodeAssign decodes a value of task.assign.
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
