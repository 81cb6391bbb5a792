package events

import (
	"encoding/json"
	"fmt"
)

// Control is the value of task.control: commands for claims of one incarnation of one node, or its fence.
type Control struct {
	Version        int       `json:"version"`
	Term           int64     `json:"term"`
	Initiator      string    `json:"initiator"`
	Recipient      string    `json:"recipient"`
	Incarnation    string    `json:"incarnation"`
	CreateDateTime int64     `json:"createDateTime"`
	Fence          bool      `json:"fence,omitempty"` // the incarnation's work goes elsewhere: it stops all of it at once
	Drain          *bool     `json:"drain,omitempty"` // it takes no work any more, or takes it again; beside commands it is in the first value
	Commands       []Command `json:"commands"`
}

// CommandKind is what a command asks for.
type CommandKind string

// The kinds of commands. Each is repeated until the node's reports show that it was obeyed.
const (
	// CommandCancel ends the claim's run; the node answers with a final report.
	CommandCancel CommandKind = "cancel"
	// CommandPause pauses the claim's run, once its handler looks; the node answers that it is paused. A claim that has not started is released.
	CommandPause CommandKind = "pause"
	// CommandResume goes on with a paused run; the node answers that it is resumed.
	CommandResume CommandKind = "resume"
	// CommandRecall takes back a claim that has not started: the node answers that it is released. What runs goes on.
	CommandRecall CommandKind = "recall"
	// CommandUpdate brings attachments; the node's reports name their version from then on.
	CommandUpdate CommandKind = "update"
)

// Command is a wish for one claim. A node ignores a kind it does not know.
type Command struct {
	Kind               CommandKind     `json:"kind"`
	ID                 string          `json:"id"`
	Attempt            int64           `json:"attempt"`
	ClaimID            string          `json:"claimId"`
	Attachments        json.RawMessage `json:"attachments,omitempty"` // of an update
	AttachmentsVersion int64           `json:"attachmentsVersion,omitempty"`
}

// maxCommands is how many commands one value may carry, beside the limit of its bytes.
const maxCommands = 1000

// EncodeControl encodes c, split so that no value is longer than limit bytes. A fence is one value, without commands. Where there is nothing
// to say there is no value.
func EncodeControl(c Control, limit int) ([]Encoded, error) {
	commands := c.Commands
	c.Version, c.Commands = Version, nil
	if c.Fence {
		commands = nil
	}
	if len(commands) == 0 {
		c.Commands = []Command{} // a list, never null
	}
	head, err := marshal(&c)
	if err != nil {
		return nil, err
	}
	if c.Fence || len(commands) == 0 && c.Drain != nil {
		return []Encoded{{Key: []byte(c.Recipient), Value: head}}, fits(TopicControl, len(head), limit)
	}
	if len(commands) == 0 {
		return nil, nil
	}
	sizes := make([]int, len(commands))
	for i := range commands {
		b, err := marshal(&commands[i])
		if err != nil {
			return nil, err
		}
		sizes[i] = max(len(b), limit/(maxCommands+1)) // so that no value carries more than maxCommands
	}
	var out []Encoded
	err = split(sizes, limit-len(head), func(from, to int) error {
		c.Commands = commands[from:to]
		value, err := marshal(&c)
		if err != nil {
			return err
		}
		out = append(out, Encoded{Key: []byte(commands[from].ID), Value: value, From: from, To: to})
		c.Drain = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TopicControl, err)
	}
	return out, nil
}

// DecodeControl reads a value of task.control.
func DecodeControl(value []byte) (Control, error) {
	var c Control
	if err := unmarshal(TopicControl, value, &c, &c.Version); err != nil {
		return Control{}, err
	}
	if c.Recipient == "" || c.Incarnation == "" {
		return Control{}, fmt.Errorf("%s: %w: no recipient or no incarnation", TopicControl, ErrMalformed)
	}
	for i, cmd := range c.Commands {
		if cmd.ID == "" || cmd.ClaimID == "" {
			return Control{}, fmt.Errorf("%s: %w: command %d lacks a task id or a claim id", TopicControl, ErrMalformed, i)
		}
	}
	return c, nil
}
