package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// service is one of what processes call.
type service int

// The services.
const (
	storeService service = iota
	busService
	registryService
	services
)

func (s service) String() string { return [...]string{"store", "bus", "registry"}[s] }

// link is what is wrong on the way from a process to a service, or with the service itself. The zero link is fine.
type link struct {
	refused bool // calls certainly do nothing, and say so at once
	cut     bool // no request arrives
	deaf    bool // requests arrive, no answer comes back
	lossy   int  // of 1000 requests so many get lost, and of the answers as many
	late    int  // of 1000 requests that got lost so many arrive when the caller has given up
	slow    time.Duration
}

func (l link) String() string {
	switch {
	case l.refused:
		return "connections refused"
	case l.cut:
		return "no request arrives"
	case l.deaf:
		return "no answer arrives"
	case l.lossy > 0:
		return fmt.Sprintf("%d of 1000 messages get lost", l.lossy)
	case l.slow > 0:
		return fmt.Sprintf("messages take %v", l.slow)
	}
	return "fine"
}

// join is the fault of two links behind each other.
func (l link) join(o link) link {
	return link{refused: l.refused || o.refused, cut: l.cut || o.cut, deaf: l.deaf || o.deaf,
		lossy: max(l.lossy, o.lossy), late: max(l.late, o.late), slow: max(l.slow, o.slow)}
}

// Errors of calls.
var (
	errRefused = errors.New("refused")
	errSilence = errors.New("no answer")
	errExpired = errors.New("not called: the caller's time is over")
)

// certain reports whether an error means that the call did nothing and will do nothing.
func certain(err error) bool { return errors.Is(err, errRefused) || errors.Is(err, errExpired) }

// callLimit bounds a call whose context has no deadline.
const callLimit = 5 * time.Second

// net is the network, and the services as far as they can be reached.
type net struct {
	world *world
	down  [services]link // of the service itself, for all
	late  int            // requests that got lost and will arrive
	// refused, if it is set, is called once when a call is refused.
	refused func(p *process, s service)
}

func (n *net) link(p *process, s service) link { return n.down[s].join(p.links[s]) }

// delay is how long one way takes.
func (n *net) delay(l link) time.Duration {
	w := n.world
	d := w.between(0, 3*time.Millisecond)
	if w.chance(30) {
		d += w.between(0, 60*time.Millisecond)
	}
	if l.slow > 0 {
		d += w.between(l.slow/4, l.slow)
	}
	return d
}

// effect is what a call does at the service. Lost means that its answer will not arrive.
type effect func(lost bool) error

// call is one call of a service: the way there, the effect, the way back. An error of its own says whether it is
// certain that nothing was done; one of the effect's is the service's answer.
func (n *net) call(ctx context.Context, s service, do effect) error {
	w := n.world
	p := w.current.process
	deadline := w.now + callLimit
	if at, ok := ctx.Deadline(); ok {
		deadline = min(deadline, w.now+time.Until(at))
	}
	over := func() bool { return w.now >= deadline || ctx.Err() != nil }
	if over() {
		return errExpired
	}
	ended := func() bool { return ctx.Err() != nil }
	silence := func() error { // until the caller's time is over, or the connection breaks
		until := deadline
		if w.chance(500) {
			until = min(until, w.now+w.between(0, time.Second))
		}
		w.park(until, ended)
		return errSilence
	}
	w.park(min(deadline, w.now+n.delay(n.link(p, s))), ended)
	if over() {
		return errExpired // the request had not been written yet
	}
	l := n.link(p, s)
	if l.refused {
		if hook := n.refused; hook != nil {
			n.refused = nil
			hook(p, s)
		}
		return errRefused
	}
	if l.cut || w.chance(l.lossy) {
		if w.chance(l.late) {
			w.note(p.name, "a request to the %s is under way for long", s)
			n.late++
			w.after(w.between(0, 8*time.Second), func() {
				n.late--
				_ = do(true)
			})
		}
		return silence()
	}
	lost := l.deaf || w.chance(l.lossy)
	err := do(lost)
	if lost || errors.Is(err, errSilence) {
		return silence()
	}
	w.park(min(deadline, w.now+n.delay(l)), ended)
	if over() {
		return errSilence
	}
	return err
}
