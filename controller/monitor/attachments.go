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
	"github.com/skalds-go/skalds/pkg/clock"
)

const (
	// maxOutdated bounds how many tasks are remembered whose nodes lack new attachments. Those beyond are found by a
	// later comparison.
	maxOutdated = 10_000
	// attachmentsPage is how many tasks are read at once: their attachments may be large.
	attachmentsPage = 32
)

// attachments forwards new attachments to the nodes that hold the tasks. It remembers the tasks whose nodes, as far as
// it knows, lack the newest ones.
type attachments struct {
	store       Store
	fleet       *fleet.Fleet
	commander   *commander
	clock       clock.Clock
	resendAfter time.Duration

	mu     sync.Mutex
	sentAt map[string]time.Duration // by task id; notSent until then
}

const notSent = time.Duration(-1 << 62)

// add notes that tasks may have new attachments. It is safe for concurrent use.
func (a *attachments) add(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sentAt == nil {
		a.sentAt = make(map[string]time.Duration)
	}
	for _, id := range ids {
		if len(a.sentAt) < maxOutdated {
			a.sentAt[id] = notSent
		}
	}
}

// markDue returns the tasks whose attachments must be sent now, and notes that they are.
func (a *attachments) markDue(now time.Duration) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(a.sentAt)) {
		if a.sentAt[id] <= now-a.resendAfter {
			a.sentAt[id] = now
			ids = append(ids, id)
		}
	}
	return ids
}

// remove forgets tasks, except those that were updated again since they were marked.
func (a *attachments) remove(ids []string, marked time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if a.sentAt[id] == marked {
			delete(a.sentAt, id)
		}
	}
}

// unmark notes that tasks that were marked were not sent.
func (a *attachments) unmark(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if _, ok := a.sentAt[id]; ok {
			a.sentAt[id] = notSent
		}
	}
}

// forward sends new attachments to the nodes that hold the tasks, again and again until their reports show that they
// have them.
func (a *attachments) forward(ctx context.Context) error {
	now := a.clock.Boot()
	ids := a.markDue(now)
	for len(ids) > 0 {
		n := min(len(ids), attachmentsPage)
		if err := a.send(ctx, ids[:n], now); err != nil {
			// The others come first in the next round: a page with a node that cannot be reached must not hide them.
			a.unmark(ids[n:])
			return fmt.Errorf("forward new attachments of %d tasks: %w", n, err)
		}
		ids = ids[n:]
	}
	return nil
}

func (a *attachments) send(ctx context.Context, ids []string, now time.Duration) error {
	tasks, err := a.store.Get(ctx, ids)
	if err != nil {
		return err
	}
	outdated := make(map[string]bool, len(tasks))
	var list commands
	for i := range tasks {
		t := &tasks[i]
		h, held := fleet.HeldBy(t)
		if !held || a.fleet.HasAttachments(h.ID, t.AttachmentsVersion) {
			continue
		}
		outdated[t.ID] = true
		if to, there := a.fleet.Target(h.Key); there {
			list.add(to, events.Command{Kind: events.CommandUpdate, ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID,
				Attachments: t.Attachments, AttachmentsVersion: t.AttachmentsVersion})
		}
	}
	upToDate := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return outdated[id] })
	a.remove(upToDate, now)
	return a.commander.send(ctx, list)
}
