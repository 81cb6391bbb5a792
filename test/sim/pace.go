package main

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/pkg/loop"
)

// A controller that hurries harms what it hurries at: a dependency that is down is asked again and again, and nodes
// that are behind get more. These checks see the steps of the controller's loops, and the pauses between them.

// leastFull is the shortest pause of a dispatcher that has sent as much as it may, and leastFailed that after a
// failure, in hundredths of the loop's own: a pause is drawn from its upper half. They leave room for a nanosecond that
// the conversion between clocks takes off.
const (
	leastFull   = 80*time.Millisecond - time.Microsecond
	leastFailed = 49
)

// paced watches the pauses between the steps of a loop.
type paced struct {
	*controller
	name   string
	ended  time.Duration // when the last step ended
	failed time.Duration // the least pause after it, as it failed; 0 = it did not
	full   bool          // after the dispatcher's last step, as much was sent and had not begun as may be
}

// pace puts the checks around a loop's step, and takes guards out.
func (c *controller) pace(l loop.Loop) loop.Loop {
	p, step, leads := &paced{controller: c, name: l.Name}, l.Step, c.session
	least := time.Duration(0)
	if l.Backoff != (loop.Backoff{}) { // without one, a loop keeps its own pace
		least = l.Backoff.Pause(1, 0) * leastFailed / 100
	}
	if c.guards.noPause {
		l.Backoff = loop.Backoff{First: time.Millisecond, Max: time.Millisecond}
	}
	l.Step = func(ctx context.Context, by loop.Wake) (loop.Next, error) {
		p.begins(least)
		next, err := step(ctx, by)
		p.ends(leads, least, err)
		if c.guards.noSlowing && l.Name == "dispatcher" {
			next = next.RestFirst(0)
		}
		return next, err
	}
	return l
}

func (p *paced) begins(least time.Duration) {
	pause := p.process.clock.Boot() - p.ended
	switch {
	case p.failed > 0 && pause < least:
		p.check.violate("%s: the loop %s makes its next step %v after one that failed", p.process.name, p.name, pause)
	case p.full && pause < leastFull:
		p.check.violate("%s: the dispatcher makes its next round %v after one that left as much unstarted as may be", p.process.name, pause)
	}
}

func (p *paced) ends(l *leadership, least time.Duration, err error) {
	p.ended, p.failed, p.full = p.process.clock.Boot(), 0, false
	if err != nil {
		p.failed = least
	}
	if p.name == "dispatcher" && err == nil {
		s := l.term.Dispatcher.Status()
		p.full = s.MaxPending > 0 && s.Unstarted >= s.MaxPending
	}
}
