package session

import (
	"encoding/json"
	"hash/maphash"

	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

// handlerSignals is what a handler may watch beside its context. It is made when it is first needed.
type handlerSignals struct {
	pause     bool                 // a person wants the run paused
	requested chan struct{}        // closed while that is so
	resumed   chan struct{}        // closed while it is not
	updates   chan json.RawMessage // holds the newest attachments that the handler has not taken
}

func (cl *claim) handlerSignals() *handlerSignals {
	if cl.signals == nil {
		cl.signals = &handlerSignals{requested: make(chan struct{}), resumed: make(chan struct{}), updates: make(chan json.RawMessage, 1)}
		close(cl.signals.resumed)
	}
	return cl.signals
}

// pause pauses a claim on request. A claim that has not started is released: it takes no slots here, and starts again
// wherever some are free. A pause of a claim that has not arrived yet is remembered.
func (c *claims) pause(claimID string, now int64) {
	cl := c.byID[claimID]
	switch {
	case cl == nil:
		if !c.forgotten.has(maphash.String(c.seed, claimID)) {
			c.earlyPauses.add(claimID)
		}
	case cl.state == queued:
		c.unqueue(cl)
		c.finish(cl, task.ReportReleased, nil, "", now)
	case cl.state == running && !cl.handlerSignals().pause:
		cl.signals.pause, cl.signals.resumed = true, make(chan struct{})
		close(cl.signals.requested)
	case cl.state == running && cl.report.Kind != task.ReportPaused: // the handler has not looked yet
	default:
		c.resend(cl)
	}
}

// recall releases a claim that has not started. A recall of a claim that has not arrived yet is remembered.
func (c *claims) recall(claimID string, now int64) {
	if cl := c.byID[claimID]; cl != nil && cl.state != queued {
		c.resend(cl)
		return
	}
	c.pause(claimID, now)
}

// resume undoes a pause, and a cancel of a claim that has not arrived yet. It is reported also for a run that was not
// paused: the leader believes that it was.
func (c *claims) resume(claimID string) {
	cl := c.byID[claimID]
	switch {
	case cl == nil:
		c.earlyCancels.remove(claimID)
		c.earlyPauses.remove(claimID)
	case cl.state == running:
		if s := cl.handlerSignals(); s.pause {
			s.pause, s.requested = false, make(chan struct{})
			close(s.resumed)
		}
		cl.report.Kind = task.ReportResumed
		c.mark(cl)
	default:
		c.resend(cl)
	}
}

// enterPause has a run count as paused if that was requested, and reports whether it is. The wake is closed when the
// run may go on.
func (c *claims) enterPause(cl *claim) (resumed loop.Wake, paused bool) {
	if cl.state != running {
		return nil, false
	}
	s := cl.handlerSignals()
	if s.pause && cl.report.Kind != task.ReportPaused {
		cl.report.Kind = task.ReportPaused
		c.mark(cl)
	}
	return s.resumed, s.pause
}

// update replaces a claim's attachments, unless it has a newer version.
func (c *claims) update(claimID string, version int64, attachments json.RawMessage) {
	cl := c.byID[claimID]
	if cl == nil {
		return // the leader sends it again
	}
	if version > cl.report.Version && cl.state != ended {
		cl.report.Version = version
		if cl.state == queued {
			cl.task.Attachments = attachments
		} else {
			s := cl.handlerSignals()
			select {
			case <-s.updates:
			default:
			}
			s.updates <- attachments // it is empty, and nobody else writes
		}
	}
	c.resend(cl)
}

// paused returns the claims whose handlers pause.
func (c *claims) paused() []*claim {
	var list []*claim
	for _, cl := range c.byID {
		if cl.state == running && cl.report.Kind == task.ReportPaused {
			list = append(list, cl)
		}
	}
	return list
}
