package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

func assigned(i int) events.AssignedTask {
	return events.AssignedTask{ID: fmt.Sprint("t", i), ClassName: "c", Attempt: 1, ClaimID: fmt.Sprint("c", i), Attachments: json.RawMessage(`1`)}
}

func TestClaimsAreBounded(t *testing.T) {
	t.Parallel()
	l := defaultClaimLimits
	l.unacknowledged, l.bytes, l.earlyCommands, l.forgotten = 5, 1<<20, 3, 4
	end := func(c *claims, n int, result string) {
		for i := range n {
			c.receive(assigned(i), true, 1)
			if cl, _, ok := c.startNext(1, time.Hour); ok {
				c.end(cl, outcome{kind: task.ReportFinished, result: json.RawMessage(result)}, 1)
			}
		}
	}
	t.Run("unsettled", func(t *testing.T) {
		t.Parallel()
		c := newClaims(newSlots(1, 0, nil), l)
		end(c, 100, "1")
		if len(c.byID) != 10 || c.ignored != 90 {
			t.Errorf("%d claims are held, %d were passed over", len(c.byID), c.ignored)
		}
		if r := c.byID["c5"].report; r.Kind != task.ReportRejected || !strings.Contains(r.Error, "5 ended tasks") {
			t.Errorf("claim 5: %+v", r)
		}
		c.takeDirty(100, 1000)
		c.acknowledge([]string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"})
		c.receive(assigned(50), true, 1)
		if _, _, ok := c.startNext(1, time.Hour); !ok {
			t.Error("after they were settled there is no room")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		l := l
		l.unacknowledged, l.bytes = 1000, 250
		c := newClaims(newSlots(1, 0, nil), l)
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
		c := newClaims(newSlots(10, 0, nil), l)
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
		l.unacknowledged = 100
		c := newClaims(newSlots(1, 0, nil), l)
		end(c, 6, "1")
		c.takeDirty(100, 1000)
		c.acknowledge([]string{"c0", "c1", "c2", "c3", "c4", "c5"})
		if len(c.forgotten.place) != 4 || len(c.forgotten.ring) != 4 {
			t.Errorf("%d are remembered, %d in the ring", len(c.forgotten.place), len(c.forgotten.ring))
		}
		c.receive(assigned(5), true, 1)
		if len(c.byID) != 0 {
			t.Error("a settled claim is taken in again")
		}
	})
}

func BenchmarkClaims(b *testing.B) {
	c := newClaims(newSlots(16, 16, nil), defaultClaimLimits)
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
		cl, _, _ := c.startNext(1, time.Hour)
		c.end(cl, outcome{kind: task.ReportFinished}, 2)
		c.published(c.takeDirty(10, 1000), time.Duration(n))
		c.acknowledge([]string{t.ClaimID})
		c.tick(1, time.Duration(n))
	}
}
