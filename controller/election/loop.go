package election

import (
	"context"
	"log/slog"

	"github.com/skalds-go/skalds/pkg/loop"
)

// Term is what a controller does under one lease.
type Term interface {
	// StopActing returns when the term no longer claims, sends or reassigns. The term still listens.
	StopActing()
	// Stop returns when everything that the term runs has ended.
	Stop()
}

// candidacy is the state of an elector's loop.
type candidacy struct {
	*Elector
	begin     func(ctx context.Context, lease *Lease) Term
	log       *slog.Logger
	present   *Lease // as of the last round
	term      Term   // the present one, or an old one that still listens; nil = none
	termLease *Lease // the lease that term began with
}

// Loop returns the loop that takes part in the election, and begins a term with each lease that it wins.
//
// A term whose lease is over stops acting but still listens: nodes that neither it nor the registry confirms would
// stop. The term ends when this process leads again, or when the leader's document turns out not to be the term's any
// more.
func (e *Elector) Loop(begin func(ctx context.Context, lease *Lease) Term, log *slog.Logger) loop.Loop {
	c := &candidacy{Elector: e, begin: begin, log: log}
	return loop.Loop{
		Name:    "election",
		Step:    c.step,
		Backoff: loop.Backoff{First: e.cfg.Interval(), Max: e.cfg.Interval()},
		Failure: "the leader's document cannot be read or renewed",
		End:     c.end,
	}
}

func (c *candidacy) step(ctx context.Context, _ loop.Wake) (loop.Next, error) {
	// Only the round has a deadline: the term that the step begins outlives it.
	round, cancel := context.WithTimeout(ctx, c.cfg.Lease)
	lease, err := c.Round(round)
	cancel()
	if lease != c.present {
		c.present = lease
		if c.term != nil {
			c.term.StopActing()
		}
	}
	if doc, _ := c.Present(); c.term != nil && !c.termLease.Wrote(doc) {
		c.stop()
	}
	if lease != nil && c.term == nil {
		c.termLease, c.term = lease, c.begin(ctx, lease)
	}
	return loop.After(c.cfg.Interval()), err
}

func (c *candidacy) stop() {
	if c.term != nil {
		c.term.Stop()
		c.term = nil
	}
}

func (c *candidacy) end(ctx context.Context) {
	c.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Lease)
	defer cancel()
	if err := c.Release(ctx); err != nil {
		c.log.Debug("the leadership was not released; it expires by itself", "error", err)
	}
}
