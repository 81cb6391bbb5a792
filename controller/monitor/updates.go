package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
)

const (
	// maxUpdates bounds the tasks whose nodes are yet to be told of new attachments. Those beyond are found by a later comparison.
	maxUpdates = 10_000
	// updatePage is how many of them are read at once: they may be large.
	updatePage = 32
)

// updates are the tasks whose node does not have their newest attachments, as far as is known.
type updates struct {
	mu   sync.Mutex
	sent map[string]time.Duration // by task id: when they were sent last; not yet: longAgo
}

const longAgo = time.Duration(-1 << 62)

// Updated notes that tasks may have got new attachments. It is safe for concurrent use.
func (m *Monitor) Updated(ids []string) {
	m.updates.mu.Lock()
	defer m.updates.mu.Unlock()
	if m.updates.sent == nil {
		m.updates.sent = make(map[string]time.Duration)
	}
	for _, id := range ids {
		if len(m.updates.sent) < maxUpdates {
			m.updates.sent[id] = longAgo
		}
	}
}

// due gives the tasks whose attachments are to be sent now, and notes that they are.
func (u *updates) due(now, again time.Duration) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(u.sent)) {
		if u.sent[id] <= now-again {
			u.sent[id] = now
			ids = append(ids, id)
		}
	}
	return ids
}

// done forgets tasks, but for those that were noted anew since then.
func (u *updates) done(ids []string, since time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if u.sent[id] == since {
			delete(u.sent, id)
		}
	}
}

// forget has the attachments of tasks sent at the next time.
func (u *updates) forget(ids []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if _, ok := u.sent[id]; ok {
			u.sent[id] = longAgo
		}
	}
}

// update sends new attachments to the nodes that hold the tasks, and again until their reports show that they have them.
func (m *Monitor) update(ctx context.Context) error {
	now := m.clock.Boot()
	ids := m.updates.due(now, m.cfg.ResendAfter)
	for len(ids) > 0 {
		n := min(len(ids), updatePage)
		if err := m.sendUpdates(ctx, ids[:n], now); err != nil {
			m.updates.forget(ids[n:]) // these come first in the next round: a page with a node that cannot be reached must not hide the others
			return fmt.Errorf("pass on new attachments of %d tasks: %w", n, err)
		}
		ids = ids[n:]
	}
	return nil
}

func (m *Monitor) sendUpdates(ctx context.Context, ids []string, now time.Duration) error {
	tasks, err := m.store.Get(ctx, ids)
	if err != nil {
		return err
	}
	behind := make(map[string]bool, len(tasks))
	var list orders
	for i := range tasks {
		t := &tasks[i]
		h, held := fleet.HeldBy(t)
		if !held || m.fleet.HasAttachments(h.ID, t.AttachmentsVersion) {
			continue
		}
		behind[t.ID] = true
		if to, there := m.fleet.Target(h.Key); there {
			list.add(to, events.Command{Kind: events.CommandUpdate, ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID,
				Attachments: t.Attachments, AttachmentsVersion: t.AttachmentsVersion})
		}
	}
	m.updates.done(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return behind[id] }), now)
	return m.order(ctx, list)
}
