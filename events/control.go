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
	Fence          bool      `json:"fence,omitempty"` // the incarnation's work goes elsewhere: it must stop all of it at once
	Drain          *bool     `json:"drain,omitempty"` // start or stop draining; in the first value
	Commands       []Command `json:"commands"`
}

// CommandKind is what a command asks for.
type CommandKind string

// The kinds of commands. A command is repeated until the node's reports show that it was carried out.
const (
	// CommandCancel ends the claim's run; the node answers with a final report.
	CommandCancel CommandKind = "cancel"
	// CommandPause pauses the claim's run when its handler next checks; the node reports that it is paused. A claim
	// that has not started is released.
	CommandPause CommandKind = "pause"
	// CommandResume continues a paused run; the node reports that it is resumed.
	CommandResume CommandKind = "resume"
	// CommandRecall takes back a claim that has not started; the node reports that it is released. A running claim goes
	// on.
	CommandRecall CommandKind = "recall"
	// CommandUpdate brings new attachments; from then on the node's reports name their version.
	CommandUpdate CommandKind = "update"
)

// Command is a request about one claim. A node ignores unknown kinds.
type Command struct {
	Kind               CommandKind     `json:"kind"`
	ID                 string          `json:"id"`
	Attempt            int64           `json:"attempt"`
	ClaimID            string          `json:"claimId"`
	Attachments        json.RawMessage `json:"attachments,omitempty"` // of an update
	AttachmentsVersion int64           `json:"attachmentsVersion,omitempty"`
}

// maxCommands is how many commands one value may carry, besides the limit of its bytes.
const maxCommands = 1000

// EncodeControl encodes c, split so that no value is longer than limit bytes. A fence is one value, without commands.
// If c asks for nothing, there is no value.
func EncodeControl(c Control, limit int) ([]Encoded, error) {
	commands := c.Commands
	c.Version, c.Commands = Version, []Command{} // a list, never null
	if c.Fence {
		commands = nil
	}
	if len(commands) == 0 && !c.Fence && c.Drain == nil {
		return nil, nil
	}
	_, sizes, err := encodeEach(TopicControl, commands, func(c *Command) string { return c.ID })
	if err != nil {
		return nil, err
	}
	for i := range sizes {
		sizes[i] = max(sizes[i], limit/(maxCommands+1)) // so that no value has more than maxCommands
	}
	head, err := marshal(&c)
	if err != nil {
		return nil, err
	}
	return encodeParts(TopicControl, sizes, len(head), limit, func(from, to int) (string, any) {
		part, key := c, c.Recipient
		if from < to {
			part.Commands, key = commands[from:to], commands[from].ID
			c.Drain = nil
		}
		return key, &part
	})
}

// DecodeControl decodes a value of task.control.
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
