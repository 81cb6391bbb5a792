package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// checker sees everything that happens and reports what breaks a guarantee:
//
//   - An acknowledged task ends exactly once, unless a person has it run again, and only a report of its present claim
//     ends it.
//   - No claim is published before the store has it, and none is acknowledged that is open in the store.
//   - Two runs of one task do not overlap in true time. The run of a process that stood still counts as ended where its
//     trust ended.
//   - A node never runs tasks of more slots than its capacity, nor than its capacity for their class, and none is
//     placed where it may not run.
//   - No permit is held twice, so no more tasks of a key or a pool are held than there are permits, and no more of a
//     key run at once.
//   - While one leader leads, no more claims of a namespace are at nodes than its limit, and no two of one
//     anti-affinity key at one node.
//   - A leader places nothing that the settings which it has been told of, or newer ones, forbid; and soon after the
//     faults it knows the newest.
//   - In seeds where dependencies alone go away, nothing is moved by that.
//   - The task of a handler that ignores the end of its context ends when the grace is over, for good; its slot stays
//     taken, its result is refused.
//   - A crash is counted only of a process that died and had not been told to stop, and what crashed twice runs alone.
//   - When the faults stop, nothing is placed at a node that people want drained, and nothing pauses there.
//   - A node starts nothing on the word of a leader with a lower term than it has seen.
//   - A final report that was on the bus while its node was trusted is not passed over when the node's work is
//     reassigned.
//   - What people asked for last holds: nothing forgets it, nothing is placed against it, and nothing is cancelled that
//     nobody wants cancelled. When the faults stop it is carried out, and every run sees the newest attachments.
//   - No task is placed before its notBefore, no run outlasts its timeout, and no task its deadline, once the faults
//     have stopped.
//   - When the faults stop everything ends, and nothing is left in the leader's books.
type checker struct {
	world      *world
	truth      *truth
	cluster    *cluster
	cfg        *settings
	violations []string

	tasks      map[string]*taskRecord
	order      []*taskRecord
	claims     map[string]*claimRecord
	heartbeats map[string]time.Duration // by incarnation: its last heartbeat that took effect
	left       map[string]time.Duration // when its goodbye came to the bus
	replaced   map[string]time.Duration // when its successor first said that it is dead
	sessions   map[string]*session      // by incarnation
	drained    map[string]time.Duration // by the ids of nodes that people want drained: since when
	evicted    map[string]time.Duration // when a node was put out of the registry, by incarnation
	finals     map[uint64][]string      // claims whose final report stands in the record of this serial
	ended      int                      // tasks in a terminal state
	// changes counts what has happened in the store, and looked is what it was when allEnded found that not all have.
	changes, looked int
	// statusLost says that task.status has lost records.
	statusLost bool
	acked      int
	// settingsLog is the dispatcher's settings by version, holders the task that holds each permit, and inUse the
	// number of held tasks of each key and pool.
	settingsLog []inForce
	holders     map[string]string
	inUse       map[string]int
	held        map[string]holding // by task
	mended      time.Duration      // when the faults ended; never as long as they go on
}

type taskRecord struct {
	doc     task.Task // as it was submitted
	id      string
	acked   bool
	ends    int // times that it came into a terminal state
	retries int // that persons asked for
	runs    []*taskRun
	gone    bool // removed after its end
	kills   int  // processes that died of it
	desired desired
	times   times
	made    times // as they were submitted
}

type claimRecord struct {
	task     string
	attempt  int64
	stored   bool
	storedAt time.Duration
	by       *leadership   // that made it
	deaf     time.Duration // when its run began to ignore the end of its context; 0 = it does not
	returned bool          // its run is over
	late     bool          // it came into the store when that one did not wait for it any more
	finished bool          // a run of it ended well
	cancel   bool          // a person has asked to cancel it
	alone    bool          // nothing may run beside it
	reported bool          // its final report is on the bus
	at       time.Duration
	began    time.Duration // its first run; 0 = none
	node     string        // incarnation
}

func newChecker(w *world, cfg *settings) *checker {
	return &checker{world: w, cfg: cfg, settingsLog: make([]inForce, 1), holders: map[string]string{}, inUse: map[string]int{}, held: map[string]holding{}, tasks: map[string]*taskRecord{}, claims: map[string]*claimRecord{},
		heartbeats: map[string]time.Duration{}, left: map[string]time.Duration{},
		replaced: map[string]time.Duration{}, sessions: map[string]*session{}, drained: map[string]time.Duration{}, evicted: map[string]time.Duration{}, finals: map[uint64][]string{}}
}

func (c *checker) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.violations = append(c.violations, text)
	c.world.note("CHECKER", "%s", text)
}

func (c *checker) task(id string) *taskRecord {
	r, ok := c.tasks[id]
	if !ok {
		r = &taskRecord{id: id, desired: desired{want: task.Running}}
		c.tasks[id] = r
		c.order = append(c.order, r)
	}
	return r
}

func (c *checker) claim(id string) *claimRecord {
	r, ok := c.claims[id]
	if !ok {
		r = &claimRecord{}
		c.claims[id] = r
	}
	return r
}

// acknowledged notes that a submitter was told that its task is stored.
func (c *checker) acknowledged(id string) {
	if t := c.task(id); !t.acked {
		t.acked = true
		c.acked++
	}
}

// changed is called with each change that took effect in the store. Late says that the caller did not wait for it any
// more. One of a dispatcher was made by settings of this version, or newer ones.
func (c *checker) changed(by *seamStore, version int64, late bool, before, after *task.Task, change *task.Change) {
	as := by.role
	c.world.note(by.process.name, "%s: %s %s -> %s, attempt %d, claim %s%s", as, before.ID, before.LifecycleStatus, after.LifecycleStatus,
		after.Attempt, after.ClaimID, describe(after))
	c.changes++
	t := c.task(before.ID)
	was, is := before.LifecycleStatus.Terminal(), after.LifecycleStatus.Terminal()
	switch {
	case was && !is && as == rolePeople:
		t.retries++
		c.ended--
	case was && (!is || as != roleIngest || before.LifecycleStatus != after.LifecycleStatus):
		c.violate("%s was %s and became %s by the %s", t.id, before.LifecycleStatus, after.LifecycleStatus, as)
	case !was && is:
		t.ends++
		c.ended++
		if t.ends != t.retries+1 {
			c.violate("%s has ended %d times, with %d retries", t.id, t.ends, t.retries)
		}
	}
	if after.Attempt < before.Attempt {
		c.violate("%s went back from attempt %d to %d", t.id, before.Attempt, after.Attempt)
	}
	if as == roleIngest && (change.Attempt != before.Attempt || change.ClaimID != before.ClaimID) {
		c.violate("a report of %s, attempt %d, claim %s was taken for attempt %d, claim %s",
			t.id, change.Attempt, change.ClaimID, before.Attempt, before.ClaimID)
	}
	if a := change.Assign; a != nil && before.LifecycleStatus == task.Created { // else it is adopted
		r := c.claim(a.ClaimID)
		r.task, r.attempt, r.stored, r.node, r.alone = t.id, a.Attempt, true, a.Incarnation, before.Alone()
		r.storedAt, r.by, r.late = c.world.now, by.leads, late
		c.placed(t, a.Executor)
		c.fits(before, a.Executor)
		c.obeyed(before, a, version, c.ofNamespace(before, r))
		c.keepsOff(before, a.Executor, r)
	}
	if after.LifecycleStatus == task.Finished && !was && (string(after.Result) != result(after.ClaimID) || !c.claim(after.ClaimID).finished) {
		c.violate("%s is finished by claim %s with the result %s, which no run of that claim gave", t.id, after.ClaimID, after.Result)
	}
	c.moved(as, before, after)
	c.gaveUp(as, before, after)
	c.permitted(before, after)
	c.shares(before, after)
	c.checkDesired(t, as, before, after, change)
	c.timed(t, as, before, after)
	c.crashed(t, before, after)
	if as == roleMonitor && !is && before.Held() && !after.Held() {
		c.takenBack(before)
	}
}

func describe(t *task.Task) string {
	if t.Executor == "" {
		return ""
	}
	return fmt.Sprintf(" for %s (%s)", t.Executor, t.Incarnation)
}

// result is what the handler of a claim returns.
func result(claim string) string { return `"` + claim + `"` }

// takenBack checks that no final report was passed over. A node's work is reassigned no earlier than this after its
// last heartbeat, and what was on the bus before the need was seen has to be taken in first.
func (c *checker) takenBack(t *task.Task) {
	r := c.claim(t.ClaimID)
	if !r.reported || c.statusLost {
		return // ingest may hold the place it had in a log that is gone for that of the new one, until it reads again
	}
	wait := scale(c.cfg.lostAfter+c.cfg.lostAfter/10, million, fastest)
	left, said := c.left[t.Incarnation]
	if at, dead := c.replaced[t.Incarnation]; dead {
		wait, left, said = 0, at, true // at once
	}
	if r.at < c.heartbeats[t.Incarnation]+wait-100*time.Millisecond || said && r.at < left {
		c.violate("%s was taken back from %s although the final report of claim %s was on the bus since %d ms",
			t.ID, t.Incarnation, t.ClaimID, r.at.Milliseconds())
	}
}

// heartbeat notes a heartbeat that took effect.
func (c *checker) heartbeat(n *registry.Node) {
	c.heartbeats[n.Incarnation] = c.world.now
	if _, known := c.replaced[n.Replaces]; !known && n.Replaces != "" {
		c.replaced[n.Replaces] = c.world.now
	}
}

// published is called with each record that comes to the bus.
func (c *checker) published(by *process, topic string, serial uint64, value []byte) {
	switch topic {
	case events.TopicAssign:
		a, err := events.DecodeAssign(value)
		if err != nil {
			panic(err) // our own encoder wrote it
		}
		c.assigned(by, &a)
	case events.TopicStatus:
		s, err := events.DecodeStatus(value)
		if err != nil {
			panic(err)
		}
		c.reported(by, &s, serial)
	}
}

func (c *checker) assigned(by *process, a *events.Assign) {
	for i := range a.Tasks {
		t := &a.Tasks[i]
		c.world.note(by.name, "publishes %s, attempt %d, claim %s, term %d to %s", t.ID, t.Attempt, t.ClaimID, a.Term, a.Incarnation)
		if !c.claim(t.ClaimID).stored {
			c.violate("claim %s of %s was published, and the store has never had it", t.ClaimID, t.ID)
		}
	}
	for _, id := range a.Acknowledged {
		r := c.claim(id)
		t, ok := c.truth.get(r.task)
		if r.stored && ok && t.Held() && t.ClaimID == id {
			c.violate("claim %s of %s is settled with %s, and the store says %s", id, r.task, a.Incarnation, t.LifecycleStatus)
		}
	}
	if len(a.Acknowledged) > 0 {
		c.world.note(by.name, " settles %v with %s", a.Acknowledged, a.Incarnation)
	}
}

func (c *checker) reported(by *process, s *events.Status, serial uint64) {
	for i := range s.Reports {
		r := &s.Reports[i]
		c.world.note(by.name, "reports %s %s, attempt %d, claim %s", r.ID, r.Kind, r.Attempt, r.ClaimID)
		if claim := c.claim(r.ClaimID); r.Kind.Final() && !claim.reported {
			claim.reported, claim.at = true, c.world.now
			c.finals[serial] = append(c.finals[serial], r.ClaimID)
		}
	}
	if s.Notice != "" {
		c.world.note(by.name, "says %s (%s)", s.Notice, s.Incarnation)
	}
	if s.Notice == events.NoticeLeft {
		c.left[s.Incarnation] = c.world.now
	}
}

// forgot notes that the bus has lost records.
func (c *checker) forgot(topic string, serials []uint64) {
	c.statusLost = c.statusLost || topic == events.TopicStatus && len(serials) > 0
	for _, serial := range serials {
		for _, id := range c.finals[serial] {
			c.claims[id].reported = false
		}
	}
}

// allEnded reports whether every task that the store holds has ended.
func (c *checker) allEnded() bool {
	if c.looked == c.changes {
		return false // as the last look said
	}
	c.looked = c.changes
	counts, err := c.truth.mem.Counts(background)
	if err != nil {
		panic(err)
	}
	open := int64(0)
	for status, n := range counts {
		if !status.Terminal() {
			open += n
		}
	}
	if open == 0 {
		c.looked = 0
	}
	return open == 0
}

// finish looks at how everything ended.
func (c *checker) finish() {
	for _, t := range c.order {
		if !t.acked {
			continue
		}
		doc, ok := c.truth.get(t.id)
		switch {
		case t.gone:
		case ok && epoch+c.world.now.Milliseconds()-doc.UpdateDateTime > (c.cfg.retention+80*time.Second).Milliseconds():
			c.violate("%s ended %d ms ago, and is still there", t.id, epoch+c.world.now.Milliseconds()-doc.UpdateDateTime)
		case !ok:
			c.violate("%s was acknowledged, and is not in the store", t.id)
		case !doc.LifecycleStatus.Terminal():
			text, err := json.Marshal(doc)
			if err != nil {
				panic(err)
			}
			c.violate("%s has not ended: %s", t.id, text)
		case t.ends != t.retries+1:
			c.violate("%s has ended %d times, with %d retries", t.id, t.ends, t.retries)
		}
	}
}
