package term

import (
	"context"
	"sync"

	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// Wakes wake the loops of terms. They outlive a term: one that fires while nobody leads is found by the next term's first round.
type Wakes struct {
	Stored     loop.Wake // tasks may wait that did not before
	Capacity   loop.Wake // nodes may have free slots, or limits let more run
	Membership loop.Wake // nodes have joined or left
	Desired    loop.Wake // desired states were stored
	Due        loop.Wake // something may be due earlier than was known
}

// Submitted wakes the loops that have to do with new tasks and desired states.
func (w Wakes) Submitted() {
	w.Stored.Signal()
	w.Desired.Signal()
	w.Due.Signal()
}

// Notifier tells the leader what this controller has stored, while another one leads.
type Notifier interface {
	Stored()
	Updated(id string)
}

// Holder makes the terms of one controller, and passes on to the present one, or to the leader elsewhere, what this controller has stored.
type Holder struct {
	cfg      Config
	deps     Deps
	notifier Notifier
	wakes    Wakes

	mu   sync.Mutex
	term *Term // the last one
}

// NewHolder makes a holder.
func NewHolder(cfg Config, deps Deps, n Notifier) *Holder {
	return &Holder{cfg: cfg, deps: deps, notifier: n, wakes: Wakes{
		Stored: loop.NewWake(), Capacity: loop.NewWake(), Membership: loop.NewWake(), Desired: loop.NewWake(), Due: loop.NewWake(),
	}}
}

// Begin begins a term.
func (h *Holder) Begin(ctx context.Context, lease *election.Lease) election.Term {
	t := newTerm(h.cfg, h.deps, h.wakes, lease)
	h.mu.Lock()
	h.term = t
	h.mu.Unlock()
	t.begin(ctx)
	return t
}

// Acting returns the term that acts; nil if this controller follows, or does not act yet.
func (h *Holder) Acting() *Term {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term == nil || !h.term.Acts() {
		return nil
	}
	return h.term
}

// Stored has the leader look for tasks or desired states that were stored.
func (h *Holder) Stored() {
	if h.Acting() != nil {
		h.wakes.Submitted()
		return
	}
	h.notifier.Stored()
}

// Updated has the leader send the new attachments of a task. A call of Stored has to follow.
func (h *Holder) Updated(id string) {
	if t := h.Acting(); t != nil {
		t.Updated([]string{id})
		return
	}
	h.notifier.Updated(id)
}

// SettingsStored has this controller's term, if there is one, go by new settings at once. Other leaders look for them.
func (h *Holder) SettingsStored(d store.Dispatcher) {
	if t := h.Acting(); t != nil {
		t.Use(d)
	}
}

// DrainsStored has this controller's term look at once which nodes are to be drained.
func (h *Holder) DrainsStored() { h.wakes.Membership.Signal() }

// FollowDrains does what DrainsStored does, and waits until the term, if this controller has one that acts, places nothing
// on nodes that drain. The nodes are told later.
func (h *Holder) FollowDrains(ctx context.Context) error {
	h.DrainsStored()
	if t := h.Acting(); t != nil {
		return t.monitor.FollowDraining(ctx)
	}
	return nil
}
