package fleet

import (
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Claim is one claim of a task for an incarnation.
type Claim struct {
	Key
	TaskID  string
	Attempt int64
	ID      string
	Class   string
	Alone   bool  // nothing else may run beside it
	Version int64 // of the attachments that the node is known to have

	Slots           int // that it takes of its node; less than one counts as one
	Namespace       string
	AntiAffinityKey string // empty = it has none
	KeyPermit       string // of its concurrency key; empty = it has none
	PoolPermit      string // of its pool; empty = it has none
	Foreign         bool   // made by another leader, which may yet unclaim it: it must be adopted before it is resent
	Why             string // how its node was picked, for people; empty = another leader picked it
}

func (c *Claim) width() int { return max(c.Slots, 1) }

// entry is a claim and what is known of it.
type entry struct {
	Claim
	phase    phase
	reported bool // the node has reported that it began
	sentAt   time.Duration
	recalled bool  // the node was asked to release it if it has not begun
	compared int64 // how many comparisons had begun when it was made

	resends  int   // since the node's report number resentAt
	resentAt int64 // the node's count of reports when it was last resent

	heartbeat int64 // the node's newest heartbeat when it last reported the claim as begun; 0 = not known
	inherited bool  // it had begun when this leadership did
}

// phase is how far the making of a claim has come.
type phase uint8

const (
	// publishing claims are in the dispatcher's hands, which may still unclaim them.
	publishing phase = iota
	// sent claims may be at their node. They can only be resent.
	sent
)

// due reports whether a claim was sent longer than after ago and has not been reported.
func (e *entry) due(now, after time.Duration) bool {
	return e.phase == sent && !e.reported && now-e.sentAt >= after
}

// Claims is which claims the nodes hold.
type Claims struct {
	mu        *sync.Mutex
	cfg       Config
	live      *Liveness
	available *Availability
	permits   *Permits

	claims    map[string]*entry // by claim id
	unstarted int               // claims that no node has reported as begun
	runTimes  runTimes

	comparisons int64               // begun
	dropped     map[string]struct{} // claims dropped since a comparison began; nil outside of one
	primed      bool                // a comparison has ended
}

func newClaims(mu *sync.Mutex, cfg Config, live *Liveness, available *Availability, permits *Permits) *Claims {
	return &Claims{mu: mu, cfg: cfg, live: live, available: available, permits: permits,
		claims: make(map[string]*entry), runTimes: make(runTimes)}
}

// Reserve counts claims as held, before they are written to the store.
func (c *Claims) Reserve(claims []Claim, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		c.add(&entry{Claim: claim, phase: publishing, sentAt: now, compared: c.comparisons})
	}
}

// Sent notes that claims may have reached their node, or that it is not known whether they were written. From now on
// they can only be resent.
func (c *Claims) Sent(ids []string, now time.Duration) {
	c.each(ids, func(e *entry) { e.phase, e.sentAt, e.compared = sent, now, c.comparisons })
}

// Adopted notes that the leaders that made claims cannot unclaim them any more.
func (c *Claims) Adopted(ids []string) {
	c.each(ids, func(e *entry) { e.Foreign = false })
}

// Recalled notes that nodes are asked to release claims that have not begun. A node that does so does not refuse
// others: the report frees its slots like any end.
func (c *Claims) Recalled(ids []string) {
	c.each(ids, func(e *entry) { e.recalled = true })
}

// Resent notes that claims were sent again, and that this was done for certain.
func (c *Claims) Resent(ids []string) {
	c.each(ids, func(e *entry) {
		if reports := c.live.members[e.Key].reports; e.resentAt != reports {
			e.resentAt, e.resends = reports, 0
		}
		e.resends++
	})
}

func (c *Claims) each(ids []string, do func(*entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if e, ok := c.claims[id]; ok {
			do(e)
		}
	}
}

// Drop forgets claims that no node holds.
func (c *Claims) Drop(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.drop(id)
	}
}

// TakenBack drops claims that the store has taken back from a node. The tasks of the ended ones have ended, those of
// the others wait again.
func (c *Claims) TakenBack(again, ended []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range again {
		c.drop(id)
	}
	for _, id := range ended {
		if e, ok := c.drop(id); ok {
			c.live.departures.ended(e.Key)
		}
	}
}

// Reported takes in an ingested report of an incarnation. It reports whether capacity came free: on a node, or for more
// tasks to be sent.
func (c *Claims) Reported(k Key, r *task.Report) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, held := c.claims[r.ClaimID]
	// A node repeats an end until it reads that it was acknowledged. So an end of a claim that is not known any more
	// does not show that the node reads what it is sent.
	if held || !r.Kind.Final() {
		c.available.reported(k)
	}
	if r.Kind.Final() {
		return c.ended(k, r)
	}
	if !held {
		return false
	}
	full := c.full()
	c.begun(e)
	e.Version, e.heartbeat = max(e.Version, r.Version), r.Heartbeat
	return full && !c.full()
}

// ended takes in a final report. It reports whether slots of a node came free.
func (c *Claims) ended(k Key, r *task.Report) bool {
	m, known := c.live.members[k]
	e, held := c.drop(r.ClaimID)
	if known {
		width := 1
		if held {
			width = e.width()
		}
		m.endedSlots += width
		m.refused = m.refused || r.Kind == task.ReportRejected || r.Kind == task.ReportReleased && !(held && e.recalled)
		c.live.touch(m)
	}
	if !held {
		return known
	}
	if r.Kind != task.ReportRejected && r.Kind != task.ReportReleased {
		c.live.departures.ended(k)
	}
	if r.StartedAt > 0 && r.FinishedAt >= r.StartedAt {
		c.runTimes.observe(e.Class, float64(r.FinishedAt-r.StartedAt))
	}
	return known
}

// HasAttachments reports whether the node that holds a claim has attachments of this version: it was sent them with the
// claim, or has said so.
func (c *Claims) HasAttachments(claimID string, version int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.claims[claimID]
	return ok && e.Version >= version || version == 0
}

// Unstarted returns how many claims no node has reported as begun.
func (c *Claims) Unstarted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unstarted
}

// full reports whether as many tasks are sent and not started as may be.
func (c *Claims) full() bool { return c.cfg.MaxPending > 0 && c.unstarted >= c.cfg.MaxPending }

func (c *Claims) add(e *entry) {
	c.claims[e.ID] = e
	m := c.live.member(e.Key)
	m.claims[e.ID] = e
	c.count(m, &e.Claim, 1)
	m.newSlots += e.width()
	c.live.departures.claimed(e.Key)
	if !e.reported {
		c.unstarted++
	}
}

func (c *Claims) drop(id string) (*entry, bool) {
	e, ok := c.claims[id]
	if ok {
		delete(c.claims, id)
		m := c.live.members[e.Key]
		delete(m.claims, id)
		c.count(m, &e.Claim, -1)
		if !e.reported {
			c.unstarted--
		}
	}
	if c.dropped != nil {
		c.dropped[id] = struct{}{}
	}
	return e, ok
}

// count adds what a claim takes of its node and of the cluster, or takes it away.
func (c *Claims) count(m *member, claim *Claim, by int) {
	m.count(claim, by)
	c.permits.count(claim, by)
	c.live.touch(m)
}

// begun notes that a claim's node has reported that it began.
func (c *Claims) begun(e *entry) {
	if !e.reported {
		e.reported = true
		c.unstarted--
	}
}
