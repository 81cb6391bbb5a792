package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Reserve counts claims as held, before they are written to the store.
func (f *Fleet) Reserve(claims []Claim, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range claims {
		f.add(&entry{Claim: c, phase: publishing, sentAt: now, born: f.begun})
	}
}

func (f *Fleet) add(e *entry) {
	f.claims[e.ID] = e
	m := f.member(e.Key)
	m.claims[e.ID] = e
	if e.Alone {
		m.alone++
	}
}

// Sent notes that claims may have reached their node, or that it is not known whether they were written: from now on they can only be
// sent again.
func (f *Fleet) Sent(ids []string, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if e, ok := f.claims[id]; ok {
			e.phase, e.sentAt, e.born = sent, now, f.begun
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
		if e.Alone {
			m.alone--
		}
	}
	if f.recent != nil {
		f.recent[id] = struct{}{}
	}
	return e, ok
}

// shortRun is the mean run time below which a class may be queued at its nodes.
const shortRun = 100.0

// maxClasses bounds how many classes' run times are remembered.
const maxClasses = 10_000

// Reported takes in an ingested report of an incarnation. It says whether room came free.
func (f *Fleet) Reported(k Key, r *task.Report) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoke(k)
	if !r.Kind.Final() {
		if e, ok := f.claims[r.ClaimID]; ok {
			e.reported, e.Version, e.seen = true, max(e.Version, r.Version), r.Beat
		}
		return false
	}
	m, known := f.members[k]
	if known {
		m.ended++
		m.refused = m.refused || r.Kind == task.ReportRejected || r.Kind == task.ReportReleased
	}
	e, held := f.drop(r.ClaimID)
	if held && r.StartedAt > 0 && r.FinishedAt >= r.StartedAt {
		f.observeRun(e.Class, float64(r.FinishedAt-r.StartedAt))
	}
	return known
}

// Has says whether the node that holds a claim has said, or was told with the claim, that it has attachments of this version.
func (f *Fleet) Has(claimID string, version int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.claims[claimID]
	return ok && e.Version >= version || version == 0
}

// Unreachable notes that nothing could be sent to an incarnation: it gets no new work until its next heartbeat.
func (f *Fleet) Unreachable(k Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[k]; ok {
		m.refused = true
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

// Short says whether recent runs of a class were short enough to queue behind others. A class that has not run yet is not.
func (f *Fleet) Short(class string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	mean, ok := f.classes[class]
	return ok && mean < shortRun
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
	f.begun++
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
			e.reported = e.reported || h.Started
			continue
		}
		if _, ended := f.recent[h.ID]; !ended {
			// Long ago: if it has not started, it is due to be sent again at once.
			f.add(&entry{Claim: h.Claim, phase: sent, reported: h.Started, sentAt: longAgo, born: f.begun,
				inherited: h.Started && !f.primed})
		}
	}
	for id, e := range f.claims {
		if e.born < f.begun && e.phase == sent && !stored[id] {
			f.drop(id)
		}
	}
	f.recent, f.primed = nil, true
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
		Alone: t.Alone()},
		Started: t.LifecycleStatus != task.Assigning}, true
}

// AnyShort says whether there is a class whose recent runs were short.
func (f *Fleet) AnyShort() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, mean := range f.classes {
		if mean < shortRun {
			return true
		}
	}
	return false
}
