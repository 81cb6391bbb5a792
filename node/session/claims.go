package session

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// claimLimits bound what a session holds in memory, apart from what runs and what is queued.
type claimLimits struct {
	unacknowledged int           // claims whose end is not acknowledged; from here on new ones are rejected, from twice as many on ignored
	bytes          int           // bytes of their results and errors; new claims are rejected from here on
	earlyCommands  int           // cancels, and as many pauses, of claims that have not arrived
	forgotten      int           // acknowledged claims that are remembered, so that a late copy does not start them again
	resend         time.Duration // how long a final report waits for its acknowledgement until it is sent again; doubles each time
	progress       time.Duration // the least time between two progress reports of one claim
	slotTimeout    time.Duration // how long a queued claim may wait for its class's slots, or keep free slots for itself, until it is rejected
}

var defaultClaimLimits = claimLimits{
	unacknowledged: 50_000, bytes: 64 << 20, earlyCommands: 10_000, forgotten: 1 << 16,
	resend: 2 * time.Second, progress: 250 * time.Millisecond,
	slotTimeout: 30 * time.Second,
}

// resendSteps is how many waits there are before a final report is sent again, each twice as long as the one before: 2
// s to 64 s. While there is no controller, copies would fill the topic, and the next leader would have to read them all
// before anything new.
const resendSteps = 6

// claimState is how far a claim has come.
type claimState uint8

const (
	queued claimState = iota
	running
	ended
)

// claim is one assignment of one attempt to this incarnation.
type claim struct {
	task          events.AssignedTask // without attachments once it has left the queue
	state         claimState
	report        task.Report   // the newest; its kind is empty while the claim is queued
	dirty         bool          // in claims.dirty
	sent          bool          // the final report was on its way to the bus at least once
	acknowledged  bool          // forgotten; whoever still holds the claim must leave it alone
	sentAt        time.Duration // when the bus last received the final report
	times         int           // how often it received it
	progressAt    time.Duration // when the last progress was marked for sending
	progressWaits bool          // in claims.saying

	blocked   bool          // in claims.blocked
	blockedAt time.Duration // since when it is there

	isAbandoned bool // its end is reported, but its handler has not returned
	signals     *handlerSignals
}

// claims is the table of a session's claims. It is pure state, guarded by the core's lock. Wall times are epoch ms;
// durations are of the boot clock. At any time received = queued + running + finished.
type claims struct {
	slots  slots
	limits claimLimits

	byID     map[string]*claim // by claim id
	queue    []*claim          // by age
	blocked  []*claim          // the first claim of each class, and of all, that waits for slots; by blockedAt
	running  int               // an abandoned claim has ended, though its slots are taken until its handler returns
	received int64
	finished int64
	ignored  int64 // claims ignored because the table was full
	draining bool

	dirty       []*claim                // claims whose newest report the bus does not have
	waiting     [resendSteps][]sentMark // sent final reports, by their wait; each in the order of time
	progress    []*claim                // running claims whose newest progress is not due yet
	progressDue time.Duration
	bytes       int // of results and errors of ended claims

	earlyCancels *recent[string] // cancels of claims that have not arrived
	earlyPauses  *recent[string] // pauses of such
	forgotten    *recent[uint64]
	seed         maphash.Seed
}

// sentMark is when a claim's final report was sent.
type sentMark struct {
	claim *claim
	at    time.Duration
}

func newClaims(r slots, l claimLimits) *claims {
	return &claims{
		slots: r, limits: l, byID: map[string]*claim{},
		earlyCancels: newRecent[string](l.earlyCommands), earlyPauses: newRecent[string](l.earlyCommands), forgotten: newRecent[uint64](l.forgotten),
		seed: maphash.MakeSeed(),
	}
}

// receive queues a claim, or ends it at once and reports that. A copy of a known claim only has its newest report sent
// again. Known reports whether there is a handler for its class.
func (c *claims) receive(t events.AssignedTask, known bool, now int64) {
	if have := c.byID[t.ClaimID]; have != nil {
		c.resend(have)
		return
	}
	if c.forgotten.has(maphash.String(c.seed, t.ClaimID)) {
		return
	}
	if len(c.byID) >= 2*c.limits.unacknowledged {
		c.ignored++ // no report, so that the leader sends it again
		return
	}
	cl := &claim{task: t, report: task.Report{ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID, Version: t.AttachmentsVersion}}
	c.byID[t.ClaimID] = cl
	c.received++
	refused := c.slots.refusal(t.ClassName, t.Width())
	waiting := len(c.byID) - c.running - len(c.queue) - 1
	switch {
	case c.earlyCancels.remove(t.ClaimID):
		c.finish(cl, task.ReportCancelled, nil, "", now)
	case c.draining, c.earlyPauses.remove(t.ClaimID):
		c.finish(cl, task.ReportReleased, nil, "", now)
	case !known:
		c.finish(cl, task.ReportRejected, nil, fmt.Sprintf("no handler for class %q", t.ClassName), now)
	case refused != "":
		c.finish(cl, task.ReportRejected, nil, refused, now)
	case waiting >= c.limits.unacknowledged || c.bytes >= c.limits.bytes:
		c.finish(cl, task.ReportRejected, nil, fmt.Sprintf("%d ended tasks with %d bytes are not acknowledged yet", waiting, c.bytes), now)
	default:
		c.queue = append(c.queue, cl)
		c.slots.enqueue(cl)
	}
}

// startNext starts the queued claim that nextIndex finds, and returns it with its attachments.
func (c *claims) startNext(now int64, boot time.Duration) (*claim, json.RawMessage, bool) {
	i := c.nextIndex(boot)
	if i < 0 {
		return nil, nil, false
	}
	cl := c.remove(i)
	c.slots.occupy(cl)
	in := cl.task.Attachments
	cl.task.Attachments = nil
	cl.state = running
	c.running++
	cl.report.Kind, cl.report.StartedAt = task.ReportStarted, now
	c.mark(cl)
	return cl, in, true
}

// end records how a running claim ended. For an abandoned claim it only releases the slots.
func (c *claims) end(cl *claim, o outcome, now int64) {
	if cl.isAbandoned {
		cl.isAbandoned = false
		c.slots.release(cl)
	}
	if cl.state != running {
		return
	}
	c.running--
	c.slots.release(cl)
	cl.report.Permanent, cl.report.RetryAt = o.permanent, o.retryAt
	c.finish(cl, o.kind, o.result, o.text, now)
}

// abandon ends a running claim whose handler does not return. The end is reported now, what the handler may still
// return is refused, and its slots stay taken until then.
func (c *claims) abandon(cl *claim, o outcome, now int64) {
	if cl.state != running {
		return
	}
	cl.isAbandoned = true
	c.running--
	cl.report.Permanent = o.permanent
	c.finish(cl, o.kind, nil, o.text, now)
}

// finish ends a claim that does not run.
func (c *claims) finish(cl *claim, kind task.Kind, result json.RawMessage, text string, now int64) {
	cl.state = ended
	cl.task.Attachments, cl.signals = nil, nil
	cl.report.Kind, cl.report.FinishedAt, cl.report.Result, cl.report.Error = kind, now, result, text
	c.finished++
	c.bytes += cl.size()
	c.mark(cl)
}

func (cl *claim) size() int { return len(cl.report.Result) + len(cl.report.Error) }

// cancel ends a claim on request. It returns the claim if it runs; the caller then ends its context. A cancel of a
// claim that has not arrived yet is remembered.
func (c *claims) cancel(claimID string, now int64) *claim {
	cl := c.byID[claimID]
	switch {
	case cl == nil:
		if !c.forgotten.has(maphash.String(c.seed, claimID)) {
			c.earlyCancels.add(claimID)
		}
	case cl.state == queued:
		c.unqueue(cl)
		c.finish(cl, task.ReportCancelled, nil, "", now)
	case cl.state == running:
		return cl
	default:
		c.resend(cl)
	}
	return nil
}

// drain releases what is queued, and whatever arrives from now on.
func (c *claims) drain(now int64) {
	c.draining = true
	for len(c.queue) > 0 {
		c.finish(c.remove(0), task.ReportReleased, nil, "", now)
	}
}

// acknowledge forgets claims whose end the leader has stored. A claim whose final report was never sent stays: the
// acknowledgement was for another report.
func (c *claims) acknowledge(claimIDs []string) {
	for _, id := range claimIDs {
		cl := c.byID[id]
		if cl == nil || !cl.sent {
			continue
		}
		delete(c.byID, id)
		c.bytes -= cl.size()
		cl.acknowledged, cl.report = true, task.Report{}
		c.forgotten.add(maphash.String(c.seed, id))
	}
}

// setProgress records a running claim's progress. It is sent at once, or if the last one is recent, when it is due.
func (c *claims) setProgress(cl *claim, p task.Progress, boot time.Duration) {
	if cl.state != running {
		return
	}
	cl.report.Progress = &p
	switch {
	case cl.progressWaits:
	case cl.progressAt == 0 || boot-cl.progressAt >= c.limits.progress:
		c.markProgress(cl, boot)
	default:
		cl.progressWaits = true
		if len(c.progress) == 0 {
			c.progressDue = cl.progressAt + c.limits.progress
		}
		c.progress = append(c.progress, cl)
	}
}

func (c *claims) markProgress(cl *claim, boot time.Duration) {
	if cl.progressAt = boot; cl.report.Kind == task.ReportStarted {
		cl.report.Kind = task.ReportProgress // a paused claim goes on reporting that it is
	}
	c.mark(cl)
}

// resend has the newest report, if there is one, sent again.
func (c *claims) resend(cl *claim) {
	if cl.report.Kind != "" {
		c.mark(cl)
	}
}

func (c *claims) mark(cl *claim) {
	if !cl.dirty && !cl.acknowledged {
		cl.dirty = true
		c.dirty = append(c.dirty, cl)
	}
}

// tick does what is due by now: it sends progress that waited and final reports that were not acknowledged in time, and
// rejects claims that have waited too long for slots. It reports whether other claims may start because of that.
func (c *claims) tick(now int64, boot time.Duration) (rejected bool) {
	if len(c.progress) > 0 && boot >= c.progressDue {
		for _, cl := range c.progress {
			cl.progressWaits = false
			if cl.state == running {
				c.markProgress(cl, boot)
			}
		}
		c.progress = nil
	}
	for step := range c.waiting {
		list := c.waiting[step]
		for len(list) > 0 && boot >= list[0].at+c.limits.resend<<step {
			if w := list[0]; w.claim.sentAt == w.at {
				c.mark(w.claim)
			}
			list[0] = sentMark{}
			list = list[1:]
		}
		c.waiting[step] = list
	}
	return c.rejectOverdue(now, boot)
}

// due returns when tick has something to do next.
func (c *claims) due() (time.Duration, bool) {
	var at time.Duration
	ok := false
	if len(c.progress) > 0 {
		at, ok = c.progressDue, true
	}
	if len(c.blocked) > 0 {
		if give := c.blocked[0].blockedAt + c.limits.slotTimeout; !ok || give < at {
			at, ok = give, true
		}
	}
	for step, list := range c.waiting {
		if len(list) > 0 && (!ok || list[0].at+c.limits.resend<<step < at) {
			at, ok = list[0].at+c.limits.resend<<step, true
		}
	}
	return at, ok
}

// outgoing is a copy of a claim's newest report on its way to the bus.
type outgoing struct {
	claim  *claim
	report task.Report
}

// takeDirty returns the newest reports of dirty claims: at most count, and no more after about size bytes.
func (c *claims) takeDirty(count, size int) []outgoing {
	n, bytes := 0, 0
	batch := make([]outgoing, 0, min(count, len(c.dirty)))
	for n < len(c.dirty) && len(batch) < count && bytes < size {
		cl := c.dirty[n]
		c.dirty[n] = nil
		n++
		cl.dirty = false
		if !cl.acknowledged {
			cl.sent = cl.state == ended
			batch = append(batch, outgoing{cl, cl.report})
			bytes += cl.size()
		}
	}
	if c.dirty = c.dirty[n:]; len(c.dirty) == 0 {
		c.dirty = nil
	}
	return batch
}

// published records that the bus has the reports.
func (c *claims) published(batch []outgoing, boot time.Duration) {
	for i := range batch {
		if cl := batch[i].claim; batch[i].report.Kind.Final() && !cl.acknowledged {
			step := min(cl.times, resendSteps-1)
			cl.sentAt, cl.times = boot, cl.times+1
			c.waiting[step] = append(c.waiting[step], sentMark{cl, boot})
		}
	}
}

// unpublished records that the bus may not have the reports.
func (c *claims) unpublished(batch []outgoing) {
	for i := range batch {
		c.mark(batch[i].claim)
	}
}

// held returns all claims that are not forgotten.
func (c *claims) held() []registry.HeldTask {
	list := make([]registry.HeldTask, 0, len(c.byID))
	for _, cl := range c.byID {
		list = append(list, registry.HeldTask{ID: cl.task.ID, Attempt: cl.task.Attempt, ClaimID: cl.task.ClaimID, State: cl.report.Kind})
	}
	return list
}
