package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

func assigned(i int) events.AssignedTask {
	return events.AssignedTask{ID: fmt.Sprint("t", i), ClassName: "c", Attempt: 1, ClaimID: fmt.Sprint("c", i), Attachments: json.RawMessage(`1`)}
}

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
		cl, in, ok := m.next(1, m.boot)
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
				m.say(rapid.SampledFrom(list).Draw(t, "claim"), task.Progress{Percent: 1}, m.boot)
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
			m.hold(id, 1)
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
				goOn, pause := m.rest(cl)
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
			m.goOn(id)
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
			m.settle([]string{id})
			if cl != nil && m.byID[id] == nil {
				m.settled[id] = true
				if cl.state != ended {
					t.Fatalf("%s is forgotten before its end", id)
				}
			}
		},
		"take": func(t *rapid.T) {
			count, size := rapid.IntRange(1, 5).Draw(t, "count"), rapid.IntRange(1, 100).Draw(t, "bytes")
			batch := m.take(count, size)
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
				m.acked(batch, m.boot)
			} else {
				m.failed(batch)
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
	used, waiting := newRoom(0, 0, nil), newRoom(0, 0, nil)
	for _, cl := range m.stuck {
		used.take(cl)
	}
	for _, cl := range m.byID {
		switch cl.state {
		case running:
			runs++
			used.take(cl)
		case queued:
			queues++
			waiting.take(cl)
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
	case used.used != m.room.used || !maps.Equal(used.usedBy, m.room.usedBy) || waiting.used != m.room.queued || !maps.Equal(waiting.usedBy, m.room.queuedBy):
		t.Fatalf("%+v run and %+v wait, counted are %+v", used, waiting, m.room)
	case used.used > m.room.capacity || used.usedBy["a"] > m.room.of("a") || used.usedBy["b"] > m.room.of("b"):
		t.Fatalf("more runs than may: %+v", m.room)
	case used.used+waiting.used > m.room.capacity+m.room.prefetch:
		t.Fatalf("more is taken in than may be: %+v", m.room)
	case queues > 0 && m.room.free() > 0 && len(m.blocked) == 0:
		t.Fatalf("%d wait and nothing keeps them from it: %+v", queues, m.room)
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
		l := defaultLimits
		l.unsettled = rapid.IntRange(3, 20).Draw(t, "unsettled")
		l.bytes = rapid.IntRange(30, 300).Draw(t, "bytes")
		l.patience = time.Duration(rapid.IntRange(1, 10).Draw(t, "patience")) * time.Second
		m := &machine{
			claims: newClaims(newRoom(rapid.IntRange(1, 5).Draw(t, "capacity"), rapid.IntRange(0, 5).Draw(t, "prefetch"),
				map[string]int{"a": 2, "b": 1}), l),
			boot: time.Hour, started: map[string]bool{}, final: map[string]task.Kind{}, settled: map[string]bool{},
			wished: map[string]bool{}, onHold: map[string]bool{},
		}
		t.Repeat(m.actions())

		// Whatever happened: once the handlers have returned and the bus works, every end gets there.
		for _, batch := range m.inFlight {
			m.failed(batch)
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
		if len(m.queue)+len(m.blocked)+m.room.used+m.room.queued+len(m.room.taken()) != 0 {
			t.Fatalf("all has ended, and there wait %d, %d of them first, and taken is %+v", len(m.queue), len(m.blocked), m.room)
		}
		for len(m.dirty) > 0 {
			batch := m.take(3, 1000)
			m.arrive(t, batch)
			m.acked(batch, m.boot)
		}
		for id, cl := range m.byID {
			if m.final[id] != cl.report.Kind || !cl.report.Kind.Final() {
				t.Fatalf("%s ended as %s, the bus has %q", id, cl.report.Kind, m.final[id])
			}
		}
	})
}

func TestClaimsAreBounded(t *testing.T) {
	t.Parallel()
	l := defaultLimits
	l.unsettled, l.bytes, l.wishes, l.gone = 5, 1<<20, 3, 4
	end := func(c *claims, n int, result string) {
		for i := range n {
			c.receive(assigned(i), true, 1)
			if cl, _, ok := c.next(1, time.Hour); ok {
				c.end(cl, outcome{kind: task.ReportFinished, result: json.RawMessage(result)}, 1)
			}
		}
	}
	t.Run("unsettled", func(t *testing.T) {
		t.Parallel()
		c := newClaims(newRoom(1, 0, nil), l)
		end(c, 100, "1")
		if len(c.byID) != 10 || c.passed != 90 {
			t.Errorf("%d claims are held, %d were passed over", len(c.byID), c.passed)
		}
		if r := c.byID["c5"].report; r.Kind != task.ReportRejected || !strings.Contains(r.Error, "5 ended tasks") {
			t.Errorf("claim 5: %+v", r)
		}
		c.take(100, 1000)
		c.settle([]string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"})
		c.receive(assigned(50), true, 1)
		if _, _, ok := c.next(1, time.Hour); !ok {
			t.Error("after they were settled there is no room")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		l := l
		l.unsettled, l.bytes = 1000, 250
		c := newClaims(newRoom(1, 0, nil), l)
		end(c, 5, strings.Repeat("1", 100))
		if r := c.byID["c2"].report; r.Kind != task.ReportFinished {
			t.Errorf("claim 2: %+v", r)
		}
		if r := c.byID["c3"].report; r.Kind != task.ReportRejected {
			t.Errorf("claim 3: %+v", r)
		}
	})
	t.Run("wishes", func(t *testing.T) {
		t.Parallel()
		c := newClaims(newRoom(10, 0, nil), l)
		for i := range 5 {
			c.cancel(fmt.Sprint("c", i), 1)
		}
		for i := range 5 {
			c.receive(assigned(i), true, 1)
		}
		for i, want := range []task.Kind{"", "", task.ReportCancelled, task.ReportCancelled, task.ReportCancelled} {
			if got := c.byID[fmt.Sprint("c", i)].report.Kind; got != want {
				t.Errorf("claim %d: %q, want %q", i, got, want)
			}
		}
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		l := l
		l.unsettled = 100
		c := newClaims(newRoom(1, 0, nil), l)
		end(c, 6, "1")
		c.take(100, 1000)
		c.settle([]string{"c0", "c1", "c2", "c3", "c4", "c5"})
		if len(c.gone.place) != 4 || len(c.gone.ring) != 4 {
			t.Errorf("%d are remembered, %d in the ring", len(c.gone.place), len(c.gone.ring))
		}
		c.receive(assigned(5), true, 1)
		if len(c.byID) != 0 {
			t.Error("a settled claim is taken in again")
		}
	})
}

func TestRecent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRecent[int](5)
		for _, k := range rapid.SliceOf(rapid.IntRange(0, 12)).Draw(t, "keys") {
			if k > 10 {
				r.take(k - 8)
				if r.has(k - 8) {
					t.Fatal("taken and there")
				}
				continue
			}
			r.add(k)
			if !r.has(k) || len(r.place) > 5 || len(r.ring) > 5 {
				t.Fatalf("after %d: %+v", k, r)
			}
		}
	})
}

func BenchmarkClaims(b *testing.B) {
	c := newClaims(newRoom(16, 16, nil), defaultLimits)
	list := make([]events.AssignedTask, 1000)
	for i := range list {
		list[i] = assigned(i)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		t := list[n%1000]
		n++
		t.ClaimID = fmt.Sprint(n)
		c.receive(t, true, 1)
		cl, _, _ := c.next(1, time.Hour)
		c.end(cl, outcome{kind: task.ReportFinished}, 2)
		c.acked(c.take(10, 1000), time.Duration(n))
		c.settle([]string{t.ClaimID})
		c.tick(1, time.Duration(n))
	}
}
