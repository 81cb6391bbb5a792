package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// line is a table of claims that a test talks to by names such as "b3", the claim of class b that takes 3 slots; what
// follows a dot only tells claims apart.
type line struct {
	*claims
	boot time.Duration
}

func newLine(capacity, prefetch int, byClass map[string]int) *line {
	return &line{newClaims(newSlots(capacity, prefetch, byClass), defaultClaimLimits), time.Hour}
}

// come takes claims in and gives those that started, as far as there was anything to start.
func (l *line) come(names ...string) []string {
	started := []string{}
	for _, name := range names {
		l.receive(events.AssignedTask{ID: name, ClassName: name[:1], Attempt: 1, ClaimID: name, Slots: int(name[1] - '0')}, true, 1)
		started = append(started, l.begin()...)
	}
	return started
}

func (l *line) begin() []string {
	started := []string{}
	for {
		cl, _, ok := l.startNext(1, l.boot)
		if !ok {
			return started
		}
		started = append(started, cl.task.ID)
	}
}

// over ends running claims, and gives those that started for it.
func (l *line) over(names ...string) []string {
	for _, name := range names {
		l.end(l.byID[name], outcome{kind: task.ReportFinished}, 1)
	}
	return l.begin()
}

// waits lets time pass, and gives the claims that were given back.
func (l *line) waits(d time.Duration) []string {
	l.boot += d
	before := slices.Clone(l.queue)
	l.tick(1, l.boot)
	gone := []string{}
	for _, cl := range before {
		if cl.report.Kind == task.ReportRejected {
			gone = append(gone, cl.task.ID)
		}
	}
	return gone
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestSlotsAreTakenInTurn(t *testing.T) {
	t.Parallel()
	l := newLine(4, 10, nil)
	same(t, "at once", l.come("a3", "b1", "a2", "c1", "b4"), "a3", "b1")
	same(t, "one slot is free: two wait for it, and nothing newer passes", l.over("b1"))
	same(t, "four are free", l.over("a3"), "a2", "c1")
	same(t, "two are free", l.over("a2"))
	same(t, "four are free again", l.over("c1"), "b4")
}

func TestAClassThatIsFullHoldsUpOnlyItself(t *testing.T) {
	t.Parallel()
	l := newLine(4, 10, map[string]int{"t": 1, "u": 3})
	same(t, "at once", l.come("t1", "t1.2", "a1", "u3", "a1.2", "u1"), "t1", "a1")
	same(t, "three slots are free", l.over("a1"), "u3")
	same(t, "the class has room", l.over("t1"), "t1.2")
	same(t, "the oldest first", l.over("t1.2"), "a1.2")
	same(t, "the class that had three", l.over("u3"), "u1")
}

func TestWithinAClassTheOldestIsFirst(t *testing.T) {
	t.Parallel()
	l := newLine(10, 10, map[string]int{"u": 3})
	same(t, "at once", l.come("u2", "u2.2", "u1", "a1"), "u2", "a1")
	same(t, "after its end", l.over("u2"), "u2.2", "u1")
}

func TestWhatWaitsTooLongIsGivenBack(t *testing.T) {
	t.Parallel()
	patience := defaultClaimLimits.slotTimeout
	t.Run("for slots", func(t *testing.T) {
		t.Parallel()
		l := newLine(4, 20, nil)
		l.come("a3", "b3", "c1", "c4", "c1.2")
		if at, ok := l.due(); !ok || at != l.boot+patience {
			t.Errorf("due at %v, %t", at, ok)
		}
		same(t, "too early", l.waits(patience-1))
		same(t, "in time", l.waits(1), "b3", "c4")
		same(t, "then", l.begin(), "c1")
		if r := l.byID["b3"].report; r.Error != "no room within 30s: the task takes 3 slots, this node has 4, 3 are taken" {
			t.Errorf("the reason is %q", r.Error)
		}
		if _, ok := l.due(); ok {
			t.Error("something is due while the node is full")
		}
		same(t, "a full node gives nothing back", l.waits(10*patience))
		same(t, "the last", l.over("c1"), "c1.2")
	})
	t.Run("for its class", func(t *testing.T) {
		t.Parallel()
		l := newLine(3, 20, map[string]int{"t": 1})
		l.come("t1", "a1", "t1.2", "a1.2", "t1.3", "a1.3")
		same(t, "the others go on", l.over("a1"), "a1.3")
		same(t, "too early", l.waits(patience-1))
		same(t, "all of the class", l.waits(1), "t1.2", "t1.3")
		if r := l.byID["t1.2"].report; r.Error != `no room within 30s: the task takes 1 slots, its class "t" has 1 on this node, 1 are taken` {
			t.Errorf("the reason is %q", r.Error)
		}
	})
	t.Run("for its class, and then for any slot", func(t *testing.T) {
		t.Parallel()
		l := newLine(3, 20, map[string]int{"t": 2})
		same(t, "at once", l.come("t1", "t2", "a1", "a1.2", "a1.3"), "t1", "a1", "a1.2")
		same(t, "now it keeps the slot", l.over("t1"))
		same(t, "given back", l.waits(patience), "t2")
		same(t, "then", l.begin(), "a1.3")
	})
	t.Run("unless it is full when the time comes", func(t *testing.T) {
		t.Parallel()
		l := newLine(2, 20, map[string]int{"t": 1})
		l.come("t1", "t1.2", "a1", "a1.2", "a1.3")
		l.end(l.byID["t1"], outcome{kind: task.ReportFinished}, 1)
		l.slots.used++ // somebody else's
		same(t, "it is the next", l.waits(patience))
		l.slots.used--
		same(t, "it starts", l.begin(), "t1.2")
	})
}

func TestWhatTheNodeRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before []string
		claim  string
		want   string // part of the reason; empty = it is taken in
	}{
		"wider than the node":       {nil, "a5", "takes 5 slots, the capacity of this node is 4"},
		"wider than the class":      {nil, "t3", `takes 3 slots, its class "t" has 2`},
		"as wide as the node":       {nil, "a4", ""},
		"as wide as the class":      {nil, "t2", ""},
		"a class above the node's":  {nil, "h4", ""},
		"wider than that":           {nil, "h5", "capacity of this node is 4"},
		"as much as may be queued":  {[]string{"a4"}, "a3", ""},
		"more than may be queued":   {[]string{"a4"}, "a4.2", "no room: 4 running and 0 queued, capacity 4 and prefetch 3, in slots; the task takes 4"},
		"one more than fits":        {[]string{"a4", "a3"}, "a1", "no room: 4 running and 3 queued, capacity 4 and prefetch 3"},
		"what its class must queue": {[]string{"t2"}, "t2.2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(4, 3, map[string]int{"t": 2, "h": 9})
			l.come(append(tt.before, tt.claim)...)
			r := l.byID[tt.claim].report
			if (r.Kind == task.ReportRejected) != (tt.want != "") || !strings.Contains(r.Error, tt.want) {
				t.Errorf("%s: %q, want %q", r.Kind, r.Error, tt.want)
			}
		})
	}
}

// Over any history of claims and ends, what may run at once is never passed, none is passed by a newer one that waits
// for the same, and everything that was taken in runs in the end.
func TestRoomProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		byClass := map[string]int{}
		for _, class := range []string{"a", "b"} {
			byClass[class] = rapid.IntRange(1, 8).Draw(t, "capacity of "+class)
		}
		l := newLine(rapid.IntRange(1, 8).Draw(t, "capacity"), rapid.IntRange(0, 12).Draw(t, "prefetch"), byClass)
		var runs []string
		ran := map[string]bool{}
		started := func(names []string) {
			for _, name := range names {
				runs, ran[name] = append(runs, name), true
			}
			used, by := 0, map[string]int{}
			for _, name := range runs {
				used, by[name[:1]] = used+int(name[1]-'0'), by[name[:1]]+int(name[1]-'0')
			}
			if used > l.slots.capacity || by["a"] > byClass["a"] || by["b"] > byClass["b"] {
				t.Fatalf("%q run at once with capacity %d and %v", runs, l.slots.capacity, byClass)
			}
		}
		var taken []string
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				name := fmt.Sprintf("%s%d.%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class"), rapid.IntRange(1, 8).Draw(t, "slots"), len(l.byID))
				older := slices.Clone(l.queue)
				begun := l.come(name)
				started(begun)
				if l.byID[name].state != ended {
					taken = append(taken, name)
				}
				full := map[string]bool{} // classes whose oldest claim does not fit: those behind it wait, too
				for _, cl := range older {
					class := cl.task.ClassName
					full[class] = full[class] || !l.slots.classFits(class, cl.task.Width())
					if len(begun) > 0 && (class == name[:1] || !full[class]) {
						t.Fatalf("%q passed %s, which is older", begun, cl.task.ID)
					}
				}
			},
			"end": func(t *rapid.T) {
				if len(runs) > 0 {
					i := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
					name := runs[i]
					runs = slices.Delete(runs, i, i+1)
					started(l.over(name))
				}
			},
			"cancel": func(t *rapid.T) {
				if len(l.queue) > 0 {
					cl := rapid.SampledFrom(l.queue).Draw(t, "claim")
					l.cancel(cl.task.ClaimID, 1)
					ran[cl.task.ID] = true // it need not run any more
					started(l.begin())
				}
			},
		})
		for len(runs) > 0 {
			name := runs[0]
			runs = runs[1:]
			started(l.over(name))
		}
		for _, name := range taken {
			if !ran[name] {
				t.Fatalf("%s was taken in and never ran; %+v", name, l.slots)
			}
		}
	})
}
