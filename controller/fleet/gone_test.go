package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

// Each kind of departure is remembered with its name and times.
func TestGoneNodesAreRemembered(t *testing.T) {
	t.Parallel()
	successor := beat("n1", "i2", 1)
	successor.Replaces = "i1"
	for name, c := range map[string]struct {
		then func(f *fleet.Fleet)
		want fleet.Departure
		at   time.Duration
	}{
		"silent":      {func(f *fleet.Fleet) { f.Reassign(n1, 10*time.Second) }, fleet.DepartedLost, 10 * time.Second},
		"vanished":    {func(f *fleet.Fleet) { look(f, time.Second, snapshot("r")) }, fleet.DepartedLost, 1010 * time.Millisecond},
		"left":        {func(f *fleet.Fleet) { f.Left(n1); f.Reassign(n1, time.Second) }, fleet.DepartedLeft, time.Second},
		"left late":   {func(f *fleet.Fleet) { look(f, time.Second, snapshot("r")); f.Left(n1) }, fleet.DepartedLeft, 1010 * time.Millisecond},
		"replaced":    {func(f *fleet.Fleet) { look(f, time.Second, snapshot("r", successor)) }, fleet.DepartedReplaced, 1010 * time.Millisecond},
		"evicted":     {func(f *fleet.Fleet) { f.Evicted(n1); f.Reassign(n1, time.Minute) }, fleet.DepartedEvicted, time.Minute},
		"lost zombie": {func(f *fleet.Fleet) { f.Reassign(n1, time.Second); f.Evicted(n1) }, fleet.DepartedLost, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			if gone := f.Gone(0); len(gone) != 0 {
				t.Fatalf("gone before anything happened: %+v", gone)
			}
			c.then(f)
			want := fleet.GoneNode{Key: n1, How: c.want, At: c.at, LastSeen: 10 * time.Millisecond}
			if gone := f.Gone(time.Minute); len(gone) != 1 || gone[0] != want {
				t.Errorf("gone %+v, want %+v", gone, want)
			}
		})
	}
}

// The record says what became of the tasks, from the moment at which the node was found to be gone.
func TestTheRecordOfAGoneNodeFollowsItsTasks(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	var ids []string
	for i := range 7 {
		f.Reserve([]fleet.Claim{claim(n1, i)}, 0)
		ids = append(ids, fmt.Sprint("c", i))
	}
	f.Sent(ids, 0)
	report := func(claim string, k task.Kind) { f.Reported(n1, &task.Report{ClaimID: claim, Kind: k}) }
	report("c0", task.ReportFinished) // before: it does not count
	expect := func(reassigned, ended, waiting int) {
		t.Helper()
		g := f.Gone(time.Second)[0]
		if g.Reassigned != reassigned || g.Ended != ended || g.Waiting != waiting {
			t.Errorf("%+v, want %d reassigned, %d ended, %d waiting", g, reassigned, ended, waiting)
		}
	}
	f.Reassign(n1, time.Second)
	expect(0, 0, 6)
	report("c1", task.ReportFailed)
	report("c2", task.ReportReleased)
	expect(1, 1, 4)
	f.TakenBack([]string{"c3"}, []string{"c4", "unknown"})
	expect(2, 2, 2)
	f.BeginCompare()
	f.EndCompare([]fleet.Held{{Claim: claim(n1, 5)}, {Claim: claim(n1, 6)}, {Claim: claim(n1, 8)}}) // one more than was known
	expect(2, 2, 3)
	f.TakenBack([]string{"c5", "c6", "c8"}, nil)
	expect(5, 2, 0)
	look(f, time.Second, snapshot("r"))
	expect(5, 2, 0)
}

// A node whose keys the registry had lost for a moment is not gone.
func TestANodeThatComesBackIsNotGone(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1), beat("n2", "i1", 1)))
	look(f, time.Second, snapshot("r"))
	if gone := f.Gone(time.Second); len(gone) != 2 {
		t.Fatalf("%d are gone, want 2", len(gone))
	}
	look(f, 2*time.Second, snapshot("r", beat("n1", "i1", 2)))
	n := beat("n2", "i1", 2)
	f.ObserveKafka(&n, 2*time.Second)
	if gone := f.Gone(2 * time.Second); len(gone) != 0 {
		t.Errorf("gone %+v", gone)
	}
}

func TestGoneNodesAreForgottenInTime(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reassign(n1, time.Second)
	if gone := f.Gone(time.Second + fleet.GoneFor); len(gone) != 1 {
		t.Errorf("%d are remembered at the end of the time, want 1", len(gone))
	}
	if gone := f.Gone(time.Second + fleet.GoneFor + 1); len(gone) != 0 {
		t.Errorf("remembered after the time: %+v", gone)
	}
}

func TestGoneNodesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFleet()
	for i := range fleet.MaxGone + 5 {
		at := time.Duration(i) * time.Millisecond
		k := fleet.Key{Node: fmt.Sprint("n", i), Incarnation: "i1"}
		f.Observe(snapshot("r", beat(k.Node, k.Incarnation, 1)), at, at)
		f.Reassign(k, at)
	}
	gone := f.Gone(time.Minute)
	if len(gone) != fleet.MaxGone || gone[0].Node != fmt.Sprint("n", fleet.MaxGone+4) || gone[len(gone)-1].Node != "n5" {
		t.Errorf("%d are remembered, from %s to %s; want the newest %d", len(gone), gone[0].Node, gone[len(gone)-1].Node, fleet.MaxGone)
	}
}
