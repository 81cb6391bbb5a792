package main

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"time"

	nodesession "github.com/skalds-go/skalds/node/session"
)

// cancelGrace is CANCEL_GRACE, of nodes and of controllers.
const cancelGrace = 10 * time.Second

// job is what a task's attachments say.
type job struct {
	Ms      int   `json:"ms"`          // how long it takes
	Kills   int   `json:"k,omitempty"` // how many processes die of it
	Deaf    int   `json:"d,omitempty"` // for how many ms it ignores the end of its context
	Version int64 `json:"v,omitempty"` // of these attachments
}

func (j job) encode() json.RawMessage {
	b, err := json.Marshal(j)
	if err != nil {
		panic(err) // numbers always encode
	}
	return b
}

func decodeJob(in json.RawMessage) (j job) {
	if err := json.Unmarshal(in, &j); err != nil {
		panic(err) // people wrote it
	}
	return j
}

// handle is the handler of all tasks. Whether one fails and how long it takes to stop or to pause is decided by its
// claim.
func (s *session) handle(ctx context.Context, by *nodesession.Run, in json.RawMessage) (json.RawMessage, error) {
	if s.process.dead {
		panic(killed{})
	}
	w, j, claim := s.process.world, decodeJob(in), by.Task().ClaimID
	run := s.node.check.begin(s, by.Task().ID, claim, j.Version)
	f := fnv.New64a()
	_, _ = f.Write([]byte(claim))
	luck := f.Sum64()
	if j.Kills > s.node.check.task(run.task).kills {
		s.die(ctx, run, time.Duration(j.Ms/2)*time.Millisecond)
	}
	s.steps(ctx, by, run, time.Duration(j.Ms)*time.Millisecond, time.Duration(luck>>16%4)*150*time.Millisecond)
	if ctx.Err() != nil && j.Deaf > 0 && ignorable(context.Cause(ctx)) {
		s.ignore(run, time.Duration(j.Deaf)*time.Millisecond)
		if luck>>40%2 == 0 {
			s.node.check.end(run, context.Cause(ctx).Error())
			return nil, context.Cause(ctx)
		}
		s.node.check.end(run, "")
		return json.RawMessage(result(claim)), nil
	}
	if ctx.Err() != nil {
		late := min(luck%190, 95) // half of them as late as they may
		w.rest(s.node.cfg.stopMargin*time.Duration(late)/100, nil)
		s.node.check.cutOff(run, context.Cause(ctx))
		s.node.check.end(run, context.Cause(ctx).Error())
		return nil, context.Cause(ctx)
	}
	if luck>>32%10 == 0 {
		s.node.check.end(run, "failed")
		return nil, errFailed
	}
	s.node.check.end(run, "")
	return json.RawMessage(result(claim)), nil
}

// ignorable reports whether a handler may ignore that its context ended, without breaking what guarantee 3 asks of it.
func ignorable(cause error) bool {
	return !errors.Is(cause, nodesession.ErrLeaseLost) && !errors.Is(cause, nodesession.ErrDraining)
}

// ignore has a run go on after the end of its context, so that its node may give up waiting for it.
func (s *session) ignore(run *taskRun, d time.Duration) {
	w := s.process.world
	w.note(s.process.name, "ignores the end of %s, claim %s, for %v", run.task, run.claim, d)
	s.node.check.ignores(run)
	w.after(cancelGrace, func() {}) // so that time stops where the grace ends
	w.rest(d, nil)
}

// die has the process die of a run, unless the run ends before.
func (s *session) die(ctx context.Context, run *taskRun, after time.Duration) {
	w := s.process.world
	w.rest(after, func() bool { return ctx.Err() != nil })
	if ctx.Err() != nil {
		return
	}
	w.note(s.process.name, "CRASHES by %s", run.task)
	s.node.check.task(run.task).kills++
	s.node.crash(w.between(0, 4*time.Second))
	panic(killed{})
}

// steps is the work of a run: it takes a while, looks at new attachments, and pauses when it is asked to, after a
// while, too.
func (s *session) steps(ctx context.Context, by *nodesession.Run, run *taskRun, left, slow time.Duration) {
	w, c := s.process.world, s.process.clock
	paused, updates := by.PauseRequested(), by.Updates()
	ended := func() bool { return ctx.Err() != nil }
	look := func() {
		select {
		case in := <-updates:
			run.version = decodeJob(in).Version
			w.note(s.process.name, " %s has attachments of version %d", run.task, run.version)
		default:
		}
	}
	for left > 0 && !ended() {
		from := c.Boot()
		w.rest(left, func() bool { return ended() || closed(paused) || len(updates) > 0 })
		look()
		if left -= c.Boot() - from; !closed(paused) || ended() {
			continue
		}
		w.rest(slow, ended)
		for !ended() {
			resumed, pause := by.Pause()
			if !pause {
				break
			}
			if from = w.now; !run.resting {
				run.resting = true
				w.note(s.process.name, "pauses %s", run.task)
			}
			w.park(never, func() bool { return ended() || closed(resumed) || len(updates) > 0 })
			run.rested += w.now - from
			look()
		}
		run.resting = false
		paused = by.PauseRequested()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
