package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
)

// serialTransport has the real transport publish one event after the other, in an order that the seed picks, where it
// would do several at once by goroutines of its own.
type serialTransport struct {
	c    *controller
	to   *transport.Kafka
	sent map[string]bool // commands that were sent; used if none may be repeated
}

// Assign publishes claims.
func (t *serialTransport) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	results := make([]transport.Result, len(batches))
	for _, i := range t.c.world.rng.Perm(len(batches)) {
		results[i] = t.to.Assign(ctx, term, batches[i:i+1])[0]
		if !t.c.guards.unclaimUnknown {
			continue
		}
		for j, o := range results[i].Outcomes {
			if o == transport.Unknown {
				results[i].Outcomes[j] = transport.NotSent
			}
		}
	}
	return results
}

// Acknowledge sends acknowledgements.
func (t *serialTransport) Acknowledge(ctx context.Context, term int64, list []transport.Acknowledgement) (err error) {
	sortBy(list, func(s transport.Acknowledgement) string { return s.To.Node + " " + s.To.Incarnation }) // it comes off a map
	for i := range list {
		if e := t.to.Acknowledge(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Control sends commands.
func (t *serialTransport) Control(ctx context.Context, term int64, list []transport.Commands) (err error) {
	for i := range list {
		if t.c.guards.noRepeat {
			list[i].Commands = slices.DeleteFunc(list[i].Commands, t.repeated)
		}
		if e := t.to.Control(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// repeated reports whether a command was sent before.
func (t *serialTransport) repeated(c events.Command) bool {
	key := fmt.Sprint(c.Kind, c.ClaimID, c.AttachmentsVersion)
	was := t.sent[key]
	t.sent[key] = true
	return was
}

// Fence tells nodes to stop.
func (t *serialTransport) Fence(ctx context.Context, term int64, list []fleet.Target) (err error) {
	for i := range list {
		t.c.world.note(t.c.process.name, "fences %s", list[i].Incarnation)
		if e := t.to.Fence(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Confirm confirms heartbeats.
func (t *serialTransport) Confirm(ctx context.Context, term int64, list []transport.Confirmation) (err error) {
	for i := range list {
		if e := t.to.Confirm(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Announce announces the term.
func (t *serialTransport) Announce(ctx context.Context, term int64, partitions []int) []error {
	errs := make([]error, len(partitions))
	for i := range partitions {
		errs[i] = t.to.Announce(ctx, term, partitions[i:i+1])[0]
	}
	return errs
}

var (
	_ dispatcher.Transport = (*serialTransport)(nil)
	_ monitor.Transport    = (*serialTransport)(nil)
	_ ingest.Transport     = (*serialTransport)(nil)
	_ placement.Strategy   = placement.LeastTasks
)
