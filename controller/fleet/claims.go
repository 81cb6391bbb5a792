package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

// Reserve counts claims as held, before they are written to the store.
func (f *Fleet) Reserve(claims []Claim, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range claims {
		f.add(&entry{Claim: c, phase: publishing, sentAt: now, born: f.compared})
	}
}

func (f *Fleet) add(e *entry) {
	f.claims[e.ID] = e
	m := f.member(e.Key)
	m.claims[e.ID] = e
	f.count(m, &e.Claim, 1)
	m.fresh += e.width()
	f.departures.claimed(e.Key)
	if !e.reported {
		f.counts.unstarted++
	}
}

// count counts a claim in what it takes of its node and of the cluster, once up and once down.
func (f *Fleet) count(m *member, c *Claim, by int) {
	m.slots += by * c.width()
	plus(m.classes, c.Class, by*c.width())
	plus(f.counts.namespaces, c.Namespace, by)
	if c.AntiAffinityKey != "" {
		plus(m.anti, c.AntiAffinityKey, by)
		f.counts.anti.plus(c.AntiAffinityKey, m.key.Node, by)
	}
	if c.Alone {
		m.alone += by
	}
	f.counts.keys.take(c.KeyPermit, by)
	f.counts.pools.take(c.PoolPermit, by)
	f.touch(m)
}

// plus adds to a count that is absent when it is 0.
func plus(counts map[string]int, key string, by int) {
	if n := counts[key] + by; n != 0 {
		counts[key] = n
	} else {
		delete(counts, key)
	}
}

// begun notes that a claim's node has said something of it.
func (f *Fleet) begun(e *entry) {
	if !e.reported {
		e.reported = true
		f.counts.unstarted--
	}
}

// Sent notes that claims may have reached their node, or that it is not known whether they were written: from now on they can only be
// sent again.
func (f *Fleet) Sent(ids []string, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if e, ok := f.claims[id]; ok {
			e.phase, e.sentAt, e.born = sent, now, f.compared
		}
	}
}

// Adopted notes that the leaders which made claims cannot give them back any more.
func (f *Fleet) Adopted(claims map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, yes := range claims {
		if e, ok := f.claims[id]; ok && yes {
			e.Foreign = false
		}
	}
}

// Recalled notes that the nodes of claims are asked to give them back if they have not begun. A node that does so refuses no other: its room is
// free with the report, as with any end.
func (f *Fleet) Recalled(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if e, ok := f.claims[id]; ok {
			e.back = true
		}
	}
}

// Drop forgets claims that no node holds.
func (f *Fleet) Drop(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.drop(id)
	}
}

func (f *Fleet) drop(id string) (*entry, bool) {
	e, ok := f.claims[id]
	if ok {
		delete(f.claims, id)
		m := f.members[e.Key]
		delete(m.claims, id)
		f.count(m, &e.Claim, -1)
		if !e.reported {
			f.counts.unstarted--
		}
	}
	if f.recent != nil {
		f.recent[id] = struct{}{}
	}
	return e, ok
}

// The mean run times, in ms, below which a class may be queued at its nodes: so that with as much as the capacity, and with four times as much,
// which is NODE_PREFETCH by default, what is queued begins within 100 ms. See docs/adr/0012-deep-queues.md.
const (
	shortRun = 100.0
	briefRun = 10.0
)

// maxClasses bounds how many classes' run times are remembered.
const maxClasses = 10_000

// full says whether as many tasks are sent and not started as may be.
func (f *Fleet) full() bool { return f.cfg.MaxPending > 0 && f.counts.unstarted >= f.cfg.MaxPending }

// Reported takes in an ingested report of an incarnation. It says whether room came free: on a node, or for more tasks to be sent.
func (f *Fleet) Reported(k Key, r *task.Report) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	// An end that is not known, or not any more, is one that the node repeats since it has not read that it is settled: it says nothing of what the
	// node reads.
	if _, held := f.claims[r.ClaimID]; held || !r.Kind.Final() {
		f.spoke(k)
	}
	if !r.Kind.Final() {
		if e, ok := f.claims[r.ClaimID]; ok {
			full := f.full()
			f.begun(e)
			e.Version, e.seen = max(e.Version, r.Version), r.Beat
			return full && !f.full()
		}
		return false
	}
	m, known := f.members[k]
	e, held := f.drop(r.ClaimID)
	if held && endedFor(r.Kind) {
		f.departures.ended(k)
	}
	if known {
		m.ended++
		if held {
			m.ended += e.width() - 1
		}
		m.refused = m.refused || r.Kind == task.ReportRejected || r.Kind == task.ReportReleased && !(held && e.back)
		f.touch(m)
	}
	if held && r.StartedAt > 0 && r.FinishedAt >= r.StartedAt {
		f.observeRun(e.Class, float64(r.FinishedAt-r.StartedAt))
	}
	return known
}

// HasAttachments says whether the node that holds a claim has said, or was told with the claim, that it has attachments of this version.
func (f *Fleet) HasAttachments(claimID string, version int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.claims[claimID]
	return ok && e.Version >= version || version == 0
}

// Pauses of a node to which nothing could be sent; the pause doubles from the first to the last.
const (
	firstRefusal = 250 * time.Millisecond
	lastRefusal  = 2 * time.Second // the bus may be down for all nodes: all is to go on soon after its return
)

// Unreachable notes that nothing could be sent to an incarnation: it gets no new work until it has been heard of again, and not before a
// pause is over, which doubles every time.
func (f *Fleet) Unreachable(k Key, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[k]; ok {
		m.refused = true
		m.pause = min(max(2*m.pause, firstRefusal), lastRefusal)
		m.pausedUntil = now + m.pause
		f.touch(m)
	}
}

// Reachable notes that something could be sent to an incarnation: if that fails again, the pauses begin with the first.
func (f *Fleet) Reachable(k Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[k]; ok {
		m.pause = 0
	}
}

// observeRun keeps a moving mean of a class's run times, in ms; a run counts for a fifth.
func (f *Fleet) observeRun(class string, ms float64) {
	mean, ok := f.classes[class]
	if !ok {
		if len(f.classes) >= maxClasses {
			clear(f.classes)
		}
		mean = ms
	}
	f.classes[class] = mean + (ms-mean)/5
}

// PrefetchDepth says how far tasks of a class may queue behind others, by how long its recent runs took. A class that has not run yet may not.
func (f *Fleet) PrefetchDepth(class string) placement.PrefetchDepth {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch mean, ok := f.classes[class]; {
	case !ok || mean >= shortRun:
		return placement.NoQueue
	case mean >= briefRun:
		return placement.QueueOnce
	}
	return placement.QueueDeep
}

// Due gives claims that were sent a time ago and of which the node has said nothing, at most limit of them.
func (f *Fleet) Due(now, after time.Duration, limit int) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Claim
	for _, e := range f.claims {
		if len(list) == limit {
			break
		}
		m := f.members[e.Key]
		if e.phase == sent && !e.reported && !m.gone && now-e.sentAt >= after {
			list = append(list, e.Claim)
		}
	}
	slices.SortFunc(list, byID)
	return list
}

// byID gives lists that are taken off a map an order, so that the same history always has the same events.
func byID(a, b Claim) int { return strings.Compare(a.ID, b.ID) }

// BeginCompare begins a comparison with the store; what happens from now on wins over what will be read.
func (f *Fleet) BeginCompare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compared++
	f.recent = make(map[string]struct{})
}

// EndCompare ends a comparison: held are all the claims that the store showed since it began. Claims that the store does not know are
// dropped, those that only the store knows are taken in.
func (f *Fleet) EndCompare(held []Held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored := make(map[string]bool, len(held))
	for _, h := range held {
		stored[h.ID] = true
		if e, ok := f.claims[h.ID]; ok {
			if h.Started {
				f.begun(e)
			}
			continue
		}
		if _, ended := f.recent[h.ID]; !ended {
			// Long ago: if it has not started, it is due to be sent again at once.
			h.Foreign = true
			f.add(&entry{Claim: h.Claim, phase: sent, reported: h.Started, sentAt: longAgo, born: f.compared,
				inherited: h.Started && !f.primed})
		}
	}
	for id, e := range f.claims {
		if e.born < f.compared && e.phase == sent && !stored[id] {
			f.drop(id)
		}
	}
	f.recent, f.primed = nil, true
	f.counts.keys.forget()
	f.counts.pools.forget()
}

const longAgo = -1 << 60

// Held is a claim as the store knows it.
type Held struct {
	Claim
	Started bool
}

// HeldBy reads a claim off a task's document. It reports false for a task that no node holds, and for one that is an edge node's own: that
// is not the controller's to give or take.
func HeldBy(t *task.Task) (Held, bool) {
	if !t.Held() || t.Mode == task.ModeActive {
		return Held{}, false
	}
	id := t.ClaimID
	if id == "" {
		id = "task:" + t.ID // a document of another program: it has an executor, but no claim
	}
	return Held{Claim: Claim{Key: Key{t.Executor, t.Incarnation}, TaskID: t.ID, Attempt: t.Attempt, ID: id, Class: t.ClassName,
		Alone: t.Alone(), Slots: t.Slots, Namespace: t.Namespace, AntiAffinityKey: t.AntiAffinityKey, KeyPermit: t.KeyPermit, PoolPermit: t.PoolPermit},
		Started: t.LifecycleStatus != task.Assigning}, true
}

// AnyShortClass says whether there is a class whose recent runs were short.
func (f *Fleet) AnyShortClass() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, mean := range f.classes {
		if mean < shortRun {
			return true
		}
	}
	return false
}
