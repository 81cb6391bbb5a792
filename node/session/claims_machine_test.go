package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// machine is the table with what must be true of it.
type machine struct {
	*claims
	boot     time.Duration
	sent     int // claim ids that were received are c0..c(sent-1)
	tasks    []events.AssignedTask
	started  map[string]bool
	final    map[string]task.Kind // what the bus has as the end of a claim
	settled  map[string]bool
	inFlight [][]outgoing
	wished   map[string]bool // cancelled before it arrived
	onHold   map[string]bool // paused before it arrived
	stuck    []*claim        // abandoned; their handlers have not returned
}

func (m *machine) some(t *rapid.T) string {
	return fmt.Sprint("c", rapid.IntRange(0, m.sent+3).Draw(t, "claim"))
}

func (m *machine) start(t *rapid.T) {
	for {
		cl, in, ok := m.startNext(1, m.boot)
		if !ok {
			return
		}
		id := cl.task.ClaimID
		if m.started[id] || m.wished[id] || m.onHold[id] || m.settled[id] || string(in) != `1` {
			t.Fatalf("%s is started: again %v, wished away %v, settled %v, attachments %s", id, m.started[id], m.wished[id], m.settled[id], in)
		}
		m.started[id] = true
	}
}

// runningClaims are sorted, so that a failure can be repeated.
func (m *machine) runningClaims() []*claim {
	var list []*claim
	for _, id := range slices.Sorted(maps.Keys(m.byID)) {
		if m.byID[id].state == running {
			list = append(list, m.byID[id])
		}
	}
	return list
}

// arrive notes what the bus has now.
func (m *machine) arrive(t *rapid.T, batch []outgoing) {
	for _, o := range batch {
		id, kind := o.report.ClaimID, o.report.Kind
		if was := m.final[id]; kind.Final() && was != "" && was != kind {
			t.Fatalf("%s ended as %s and then as %s", id, was, kind)
		}
		if kind.Final() {
			m.final[id] = kind
		}
		if kind == "" || o.report.ID == "" {
			t.Fatalf("an empty report %+v", o.report)
		}
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"receive": func(t *rapid.T) {
			known := rapid.IntRange(0, 9).Draw(t, "known") > 0
			a := assigned(m.sent)
			a.ClassName, a.Slots = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class"), rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "slots")
			m.tasks = append(m.tasks, a)
			m.receive(a, known, 1)
			m.sent++
			m.start(t)
		},
		"copy": func(t *rapid.T) {
			if m.sent > 0 {
				m.receive(m.tasks[rapid.IntRange(0, m.sent-1).Draw(t, "claim")], true, 1)
				m.start(t)
			}
		},
		"end": func(t *rapid.T) {
			if list := m.runningClaims(); len(list) > 0 {
				kind := rapid.SampledFrom([]task.Kind{task.ReportFinished, task.ReportFailed, task.ReportCancelled}).Draw(t, "kind")
				m.end(rapid.SampledFrom(list).Draw(t, "claim"), outcome{kind: kind, result: json.RawMessage(`"result"`), text: "error"}, 2)
				m.start(t)
			}
		},
		"abandon": func(t *rapid.T) {
			if list := m.runningClaims(); len(list) > 0 {
				cl := rapid.SampledFrom(list).Draw(t, "claim")
				m.abandon(cl, outcome{kind: task.ReportCancelled, text: "abandoned"}, 2)
				m.stuck = append(m.stuck, cl)
				m.start(t)
			}
		},
		"return": func(t *rapid.T) {
			if n := len(m.stuck); n > 0 {
				m.end(m.stuck[n-1], outcome{kind: task.ReportFinished}, 3) // refused
				m.stuck = m.stuck[:n-1]
				m.start(t)
			}
		},
		"say": func(t *rapid.T) {
			if list := m.runningClaims(); len(list) > 0 {
				m.setProgress(rapid.SampledFrom(list).Draw(t, "claim"), task.Progress{Percent: 1}, m.boot)
			}
		},
		"cancel": func(t *rapid.T) {
			id := m.some(t)
			_, here := m.byID[id]
			if cl := m.cancel(id, 1); cl != nil && cl.state != running {
				t.Fatalf("cancel gave a claim that does not run")
			}
			if !here && !m.settled[id] {
				m.wished[id] = true
			}
			m.start(t)
		},
		"hold": func(t *rapid.T) {
			id := m.some(t)
			cl, here := m.byID[id]
			m.pause(id, 1)
			if !here && !m.settled[id] {
				m.onHold[id] = true
			} else if here && cl.state == queued {
				t.Fatalf("%s is paused and keeps its place", id)
			}
			m.start(t)
		},
		"rest": func(t *rapid.T) {
			if list := m.runningClaims(); len(list) > 0 {
				cl := rapid.SampledFrom(list).Draw(t, "claim")
				goOn, pause := m.enterPause(cl)
				open := true
				select {
				case <-goOn:
					open = false
				default:
				}
				if pause != open || pause != (cl.report.Kind == task.ReportPaused) {
					t.Fatalf("%s: paused %t, waits %t, reported as %s", cl.task.ClaimID, pause, open, cl.report.Kind)
				}
			}
		},
		"go on": func(t *rapid.T) {
			id := m.some(t)
			cl, here := m.byID[id]
			m.resume(id)
			if !here {
				delete(m.onHold, id)
				delete(m.wished, id)
			} else if cl.state == running && cl.report.Kind != task.ReportResumed {
				t.Fatalf("%s goes on and is reported as %s", id, cl.report.Kind)
			}
			m.start(t)
		},
		"update": func(t *rapid.T) {
			id, version := m.some(t), int64(rapid.IntRange(1, 5).Draw(t, "version"))
			m.update(id, version, json.RawMessage(`1`))
			if cl := m.byID[id]; cl != nil && cl.state != ended && cl.report.Version < version {
				t.Fatalf("%s has version %d after %d came", id, cl.report.Version, version)
			}
		},
		"settle": func(t *rapid.T) {
			id := m.some(t)
			cl := m.byID[id]
			m.acknowledge([]string{id})
			if cl != nil && m.byID[id] == nil {
				m.settled[id] = true
				if cl.state != ended {
					t.Fatalf("%s is forgotten before its end", id)
				}
			}
		},
		"take": func(t *rapid.T) {
			count, size := rapid.IntRange(1, 5).Draw(t, "count"), rapid.IntRange(1, 100).Draw(t, "bytes")
			batch := m.takeDirty(count, size)
			if len(batch) > count {
				t.Fatalf("took %d of at most %d", len(batch), count)
			}
			m.inFlight = append(m.inFlight, batch)
		},
		"publish": func(t *rapid.T) {
			if len(m.inFlight) == 0 {
				return
			}
			batch := m.inFlight[0]
			m.inFlight = m.inFlight[1:]
			outcome := rapid.SampledFrom([]string{"acked", "lost", "unknown"}).Draw(t, "outcome")
			if outcome != "lost" {
				m.arrive(t, batch)
			}
			if outcome == "acked" {
				m.published(batch, m.boot)
			} else {
				m.unpublished(batch)
			}
		},
		"tick": func(t *rapid.T) {
			m.boot += time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
			m.tick(1, m.boot)
			m.start(t)
			if at, ok := m.due(); ok && at <= m.boot {
				t.Fatalf("due at %v, at %v", at, m.boot)
			}
		},
		"drain": func(t *rapid.T) {
			if rapid.IntRange(0, 30).Draw(t, "really") == 0 {
				m.drain(1)
			}
		},
		"": m.invariants,
	}
}

func (m *machine) invariants(t *rapid.T) {
	runs, queues, bytes := 0, 0, 0
	used, waiting := newSlots(0, 0, nil), newSlots(0, 0, nil)
	for _, cl := range m.stuck {
		used.occupy(cl)
	}
	for _, cl := range m.byID {
		switch cl.state {
		case running:
			runs++
			used.occupy(cl)
		case queued:
			queues++
			waiting.occupy(cl)
			if cl.report.Kind != "" || !slices.Contains(m.queue, cl) {
				t.Fatalf("queued claim %+v", cl)
			}
		default:
			bytes += cl.size()
			m.mustGoOut(t, cl)
		}
	}
	switch {
	case runs != m.running || queues != len(m.queue):
		t.Fatalf("%d run, %d counted; %d are queued, %d in the queue", runs, m.running, queues, len(m.queue))
	case used.used != m.slots.used || !maps.Equal(used.usedBy, m.slots.usedBy) || waiting.used != m.slots.queued || !maps.Equal(waiting.usedBy, m.slots.queuedBy):
		t.Fatalf("%+v run and %+v wait, counted are %+v", used, waiting, m.slots)
	case used.used > m.slots.capacity || used.usedBy["a"] > m.slots.classLimit("a") || used.usedBy["b"] > m.slots.classLimit("b"):
		t.Fatalf("more runs than may: %+v", m.slots)
	case used.used+waiting.used > m.slots.capacity+m.slots.prefetch:
		t.Fatalf("more is taken in than may be: %+v", m.slots)
	case queues > 0 && m.slots.free() > 0 && len(m.blocked) == 0:
		t.Fatalf("%d wait and nothing keeps them from it: %+v", queues, m.slots)
	case m.received != int64(runs+queues)+m.finished:
		t.Fatalf("received %d, running %d, queued %d, finished %d", m.received, runs, queues, m.finished)
	case bytes != m.bytes:
		t.Fatalf("%d bytes are held, %d counted", bytes, m.bytes)
	case len(m.held()) != len(m.byID):
		t.Fatalf("%d claims are listed, %d held", len(m.held()), len(m.byID))
	}
}

// mustGoOut checks that an ended claim is on its way to the bus, or will be sent again.
func (m *machine) mustGoOut(t *rapid.T, cl *claim) {
	if cl.dirty && slices.Contains(m.dirty, cl) {
		return
	}
	for _, batch := range m.inFlight {
		if slices.ContainsFunc(batch, func(o outgoing) bool { return o.claim == cl }) {
			return
		}
	}
	if slices.ContainsFunc(slices.Concat(m.waiting[:]...), func(w sentMark) bool { return w.claim == cl && w.at == cl.sentAt }) {
		return
	}
	t.Fatalf("the end of %s is forgotten: %+v", cl.task.ClaimID, cl)
}

func TestClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := defaultClaimLimits
		l.unacknowledged = rapid.IntRange(3, 20).Draw(t, "unsettled")
		l.bytes = rapid.IntRange(30, 300).Draw(t, "bytes")
		l.slotTimeout = time.Duration(rapid.IntRange(1, 10).Draw(t, "patience")) * time.Second
		m := &machine{
			claims: newClaims(newSlots(rapid.IntRange(1, 5).Draw(t, "capacity"), rapid.IntRange(0, 5).Draw(t, "prefetch"),
				map[string]int{"a": 2, "b": 1}), l),
			boot: time.Hour, started: map[string]bool{}, final: map[string]task.Kind{}, settled: map[string]bool{},
			wished: map[string]bool{}, onHold: map[string]bool{},
		}
		t.Repeat(m.actions())

		// Whatever happened: once the handlers have returned and the bus works, every end gets there.
		for _, batch := range m.inFlight {
			m.unpublished(batch)
		}
		m.inFlight = nil
		for _, cl := range m.stuck {
			m.end(cl, outcome{kind: task.ReportFinished}, 3)
		}
		m.stuck = nil
		m.start(t)
		for list := m.runningClaims(); len(list) > 0; list = m.runningClaims() {
			m.end(list[0], outcome{kind: task.ReportFinished}, 3)
			m.start(t)
		}
		if len(m.queue)+len(m.blocked)+m.slots.used+m.slots.queued+len(m.slots.takenByClass()) != 0 {
			t.Fatalf("all has ended, and there wait %d, %d of them first, and taken is %+v", len(m.queue), len(m.blocked), m.slots)
		}
		for len(m.dirty) > 0 {
			batch := m.takeDirty(3, 1000)
			m.arrive(t, batch)
			m.published(batch, m.boot)
		}
		for id, cl := range m.byID {
			if m.final[id] != cl.report.Kind || !cl.report.Kind.Final() {
				t.Fatalf("%s ended as %s, the bus has %q", id, cl.report.Kind, m.final[id])
			}
		}
	})
}
