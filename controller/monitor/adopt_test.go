package monitor_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// An older leader's unclaim, whose write was under way for long, must not take a claim from a node to which this leader
// has resent it.
func TestALateUnclaimOfAnOlderLeaderTakesNothingFromANode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", false) // by the older leader, whose publish certainly failed, and whose give-back is under way
	late := task.Unclaim("t", tk.Assignment(), 2)
	b.clock.Advance(4 * resend)
	b.beat(t)
	b.round(t) // compares, and sends it again
	b.beat(t)
	b.round(t)
	if len(b.wire.tasks) == 0 {
		t.Fatal("not sent")
	}
	if n, err := b.store.Apply(t.Context(), []task.Change{late}); err != nil || n != 0 {
		t.Errorf("the task waits again, and runs elsewhere, while its node has it: %d, %v", n, err)
	}
}

// raced is a store in which something else is written right before a claim is taken over.
type raced struct {
	*memory.Store
	first *task.Change
	n     int // how many were
}

func (r *raced) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if r.first != nil && len(changes) == 1 && changes[0].Assign != nil {
		n, err := r.Store.Apply(ctx, []task.Change{*r.first})
		if err != nil {
			return 0, err
		}
		r.first, r.n = nil, n
	}
	return r.Store.Apply(ctx, changes)
}

// An unclaim that arrives before is carried out, and the claim is not resent.
func TestAnUnclaimedTaskIsNotResent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", false)
	back := task.Unclaim("t", tk.Assignment(), 2)
	st := &raced{Store: b.store, first: &back}
	b.m = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, st, b.registry, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	for range 3 {
		b.clock.Advance(4 * resend)
		b.beat(t)
		b.round(t)
	}
	if st.n != 1 || len(b.wire.tasks) != 0 {
		t.Errorf("unclaimed %d times, and sent %d times", st.n, len(b.wire.tasks))
	}
}
