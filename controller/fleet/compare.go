package fleet

import "github.com/skalds-go/skalds/pkg/task"

// BeginCompare begins a comparison with the store. What happens from now on counts more than what is read.
func (c *Claims) BeginCompare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.comparisons++
	c.dropped = make(map[string]struct{})
}

// EndCompare ends a comparison. held are all the claims that the store has shown since it began. Claims that the store
// does not know are dropped; those that only the store knows are added.
func (c *Claims) EndCompare(held []Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := make(map[string]bool, len(held))
	for _, h := range held {
		stored[h.ID] = true
		if e, ok := c.claims[h.ID]; ok {
			if h.Started {
				c.begun(e)
			}
			continue
		}
		if _, ended := c.dropped[h.ID]; !ended {
			h.Foreign = true
			c.add(&entry{Claim: h.Claim, phase: sent, reported: h.Started, sentAt: longAgo, compared: c.comparisons,
				inherited: h.Started && !c.primed})
		}
	}
	for id, e := range c.claims {
		if e.compared < c.comparisons && e.phase == sent && !stored[id] {
			c.drop(id)
		}
	}
	c.dropped, c.primed = nil, true
	c.permits.forgetForeign()
}

// longAgo is when a claim was sent that only the store knows: unless it has begun it is due to be resent at once.
const longAgo = -1 << 60

// Held is a claim as the store knows it.
type Held struct {
	Claim
	Started bool
}

// HeldBy reads a claim off a task's document. It reports false for a task that no node holds, and for one of an edge
// node's own, which the controller neither gives nor takes.
func HeldBy(t *task.Task) (Held, bool) {
	if !t.Held() || t.Mode == task.ModeActive {
		return Held{}, false
	}
	id := t.ClaimID
	if id == "" {
		id = "task:" + t.ID // a document of another program: it has an executor, but no claim
	}
	return Held{Claim: Claim{Key: Key{t.Executor, t.Incarnation}, TaskID: t.ID, Attempt: t.Attempt, ID: id, Class: t.ClassName,
		Alone: t.Alone(), Slots: t.Slots, Namespace: t.Namespace, AntiAffinityKey: t.AntiAffinityKey, KeyPermit: t.KeyPermit,
		PoolPermit: t.PoolPermit}, Started: t.LifecycleStatus != task.Assigning}, true
}
