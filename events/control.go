package events

import "fmt"

// Control is the value of task.control: commands for claims of one incarnation of one node, or its fence.
type Control struct {
	Version        int       `json:"version"`
	Term           int64     `json:"term"`
	Initiator      string    `json:"initiator"`
	Recipient      string    `json:"recipient"`
	Incarnation    string    `json:"incarnation"`
	CreateDateTime int64     `json:"createDateTime"`
	Fence          bool      `json:"fence,omitempty"` // the incarnation's work goes elsewhere: it stops all of it at once
	Commands       []Command `json:"commands"`
}

// CommandKind is what a command asks for.
type CommandKind string

// CommandCancel ends the claim's run; the node answers with a final report.
const CommandCancel CommandKind = "cancel"

// Command is a wish for one claim. A node ignores a kind it does not know.
type Command struct {
	Kind    CommandKind `json:"kind"`
	ID      string      `json:"id"`
	Attempt int64       `json:"attempt"`
	ClaimID string      `json:"claimId"`
}

// maxCommands is how many commands one value may carry: all of the same few fields, so a count is limit enough.
const maxCommands = 1000

// EncodeControl encodes c, split so that no value is longer than limit bytes. A fence is one value, without commands. Without fence and
// commands there is no value.
func EncodeControl(c Control, limit int) ([]Encoded, error) {
	commands := c.Commands
	c.Version, c.Commands = Version, nil
	if c.Fence {
		c.Commands, commands = []Command{}, nil // a list, never null
	}
	head, err := marshal(&c)
	if err != nil {
		return nil, err
	}
	if c.Fence {
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
