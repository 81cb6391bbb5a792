package term

import (
	"context"
	"sync"

	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// Wakes wake the loops of terms. They outlive a term: the next term's first round finds one that fired while nobody
// led.
type Wakes struct {
	Stored     loop.Wake // more tasks may wait
	Capacity   loop.Wake // nodes may have free slots, or limits may allow more
	Membership loop.Wake // nodes have joined or left
	Desired    loop.Wake // desired states were stored
	Due        loop.Wake // something may be due earlier than known
}

// Submitted wakes the loops that handle new tasks and desired states.
func (w Wakes) Submitted() {
	w.Stored.Signal()
	w.Desired.Signal()
	w.Due.Signal()
}

// Notifier tells the leader in another process what this controller has stored.
type Notifier interface {
	Stored()
	Updated(id string)
}

// Holder begins the terms of one controller. It announces what this controller has stored to the present term, or to
// the leader in another process. It is safe for concurrent use.
type Holder struct {
	cfg      Config
	deps     Deps
	notifier Notifier
	wakes    Wakes

	mu   sync.Mutex
	term *Term // the last one
}

// NewHolder returns a holder.
func NewHolder(cfg Config, deps Deps, n Notifier) *Holder {
	return &Holder{cfg: cfg, deps: deps, notifier: n, wakes: Wakes{
		Stored: loop.NewWake(), Capacity: loop.NewWake(), Membership: loop.NewWake(), Desired: loop.NewWake(), Due: loop.NewWake(),
	}}
}

// Begin begins a term under a lease.
func (h *Holder) Begin(ctx context.Context, lease *election.Lease) election.Term {
	t := newTerm(h.cfg, h.deps, h.wakes, lease)
	h.mu.Lock()
	h.term = t
	h.mu.Unlock()
	t.begin(ctx)
	return t
}

// Acting returns the term that acts. It is nil if this controller follows, or its term does not act yet.
func (h *Holder) Acting() *Term {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term == nil || !h.term.Acts() {
		return nil
	}
	return h.term
}

// Stored makes the leader look for new tasks and desired states.
func (h *Holder) Stored() {
	if h.Acting() != nil {
		h.wakes.Submitted()
		return
	}
	h.notifier.Stored()
}

// Updated makes the leader send the new attachments of a task. A call of Stored must follow.
func (h *Holder) Updated(id string) {
	if t := h.Acting(); t != nil {
		t.Updated([]string{id})
		return
	}
	h.notifier.Updated(id)
}

// SettingsStored applies new settings to this controller's term at once, if it acts. A leader in another process reads
// them by itself.
func (h *Holder) SettingsStored(d store.Dispatcher) {
	if t := h.Acting(); t != nil {
		t.Use(d)
	}
}

// DrainsStored makes this controller's term read at once which nodes to drain.
func (h *Holder) DrainsStored() { h.wakes.Membership.Signal() }

// FollowDrains does what DrainsStored does, and waits until this controller's term, if it acts, places nothing on nodes
// that drain. The nodes learn of it later.
func (h *Holder) FollowDrains(ctx context.Context) error {
	h.DrainsStored()
	if t := h.Acting(); t != nil {
		return t.monitor.FollowDraining(ctx)
	}
	return nil
}
