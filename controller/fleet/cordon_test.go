package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

const resend = 2 * time.Second

// sendAgain sends n claims of n1 and resends them so many times, resend apart. It returns the time of the next resend.
func sendAgain(f *fleet.Fleet, n, times int) time.Duration {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("c", i)
		f.Reserve([]fleet.Claim{claim(n1, i)}, 0)
	}
	f.Sent(ids, 0)
	at := resend
	for range times {
		f.Sent(ids, at)
		f.Resent(ids)
		at += resend
	}
	return at
}

func TestWhichNodesAreUnresponsive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims, again int
		then          func(f *fleet.Fleet)
		want          bool
	}{
		"three claims, each sent again":               {3, 1, nil, true},
		"two claims, each sent again":                 {2, 1, nil, false},
		"one claim, sent again thrice":                {1, 3, nil, true},
		"one claim, sent again twice":                 {1, 2, nil, false},
		"three claims, sent once":                     {3, 0, nil, false},
		"one of them reported":                        {3, 1, func(f *fleet.Fleet) { f.Reported(n1, &task.Report{ClaimID: "c1", Kind: task.ReportStarted}) }, false},
		"an older claim has progressed":               {3, 1, func(f *fleet.Fleet) { f.Reported(n1, &task.Report{ClaimID: "x", Kind: task.ReportProgress}) }, false},
		"an end is repeated that is not acknowledged": {3, 1, func(f *fleet.Fleet) { f.Reported(n1, &task.Report{ClaimID: "x", Kind: task.ReportFinished}) }, true},
		"they have arrived":                           {3, 1, func(f *fleet.Fleet) { f.Responded(n1) }, false},
		"it is cordoned already":                      {3, 1, func(f *fleet.Fleet) { f.Cordon(n1, "", 0) }, false},
		"it is gone":                                  {3, 1, func(f *fleet.Fleet) { f.Reassign(n1, 0) }, false},
		"another node reports something":              {3, 1, func(f *fleet.Fleet) { f.Reported(fleet.Key{Node: "n2"}, &task.Report{Kind: task.ReportFinished}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			at := sendAgain(f, c.claims, c.again)
			look(f, at-time.Second, snapshot("r", beat("n1", "i1", 1)))
			if c.then != nil {
				c.then(f)
			}
			if got := len(f.Unresponsive(at, resend, 10)) == 1; got != c.want {
				t.Errorf("unresponsive: %v, want %v", got, c.want)
			}
			if len(f.Unresponsive(at, resend, 0)) != 0 {
				t.Error("more than the limit")
			}
			if len(f.Unresponsive(at+time.Hour, resend, 10)) != 0 {
				t.Error("a node that beats no more is lost, not unresponsive")
			}
		})
	}
}

// A node that is cordoned takes nothing for a time that doubles each time, up to a limit; a report ends that.
func TestCordonsDouble(t *testing.T) {
	t.Parallel()
	f := newFleet()
	now := time.Duration(0)
	for counter, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		if got := f.Cordon(n1, "why", now); got != want*time.Minute {
			t.Fatalf("cordoned for %s, want %s", got, want*time.Minute)
		}
		for _, at := range []time.Duration{now, now + want*time.Minute - 1} {
			look(f, at, snapshot("r", beat("n1", "i1", int64(counter)*10+int64(at))))
			if nodes, _ := f.View(at); len(nodes) != 0 {
				t.Fatal("it takes work")
			}
			if all := f.AllCordoned(at); len(all) != 1 || all["n1"].Reason != "why" || all["n1"].Since != now {
				t.Fatalf("cordoned: %v", all)
			}
		}
		now += want * time.Minute
		look(f, now, snapshot("r", beat("n1", "i1", int64(counter)*10+5)))
		if nodes, _ := f.View(now); len(nodes) != 1 {
			t.Fatal("it is not tried again")
		}
		if all := f.AllCordoned(now); len(all) != 0 {
			t.Fatalf("shown as cordoned: %v", all)
		}
	}
	f.Reported(n1, &task.Report{ClaimID: "x", Kind: task.ReportStarted})
	if got := f.Cordon(n1, "why", now); got != time.Minute {
		t.Errorf("cordoned for %s after it has reported something", got)
	}
	f.Unresponsive(now+time.Hour, resend, 10) // also forgets those who left
	if got := f.Cordon(n1, "why", now+time.Hour); got != time.Minute {
		t.Errorf("cordoned for %s an hour later", got)
	}
}

// A registry that was emptied or went back to an older state has forgotten which incarnations it refuses. One of
// them sends heartbeats again, and nothing makes it register anew. It must not be without work for ever.
func TestAnEvictedIncarnationThatIsThereAgainTakesWork(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	f.Evicted(n1)
	look(f, time.Second, snapshot("r2", beat("n1", "i1", 2)))
	if nodes, _ := f.View(time.Second); len(nodes) != 1 {
		t.Error("it takes no work")
	}
	if !hear(f, 2*time.Second, 3) {
		t.Error("it is not confirmed")
	}
	if lost := look(f, time.Second+lostTimeout, snapshot("r2", beat("n1", "i1", 2))); len(lost) != 0 {
		t.Error("reassigned, though the wait began anew with each sign of it")
	}
}

// An evicted incarnation is not confirmed any more, and takes no work, until the wait for it is over.
func TestAnEvictedIncarnationIsNotConfirmed(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	f.Evicted(n1)
	if hear(f, time.Second, 2) {
		t.Error("confirmed")
	}
	if nodes, _ := f.View(time.Second); len(nodes) != 0 {
		t.Error("it takes work")
	}
	look(f, 2*time.Second, snapshot("r"))
	if lost := look(f, 2*time.Second+lostTimeout, snapshot("r")); len(lost) != 0 {
		t.Error("reassigned before the wait was over: it may be confirmed until its key is gone")
	}
	if lost := look(f, 3*time.Second+lostTimeout, snapshot("r")); len(lost) != 1 {
		t.Error("not reassigned")
	}
}

// Found by the simulation: a registry that restarts over and over keeps the key of a dead node, but that is no
// heartbeat. If the node were cordoned for it, its successor would be, too.
func TestARegistryThatRestartsMakesNoNodeUnresponsive(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r0", beat("n1", "i1", 7)))
	at := sendAgain(f, 3, 1)
	for i := range 5 {
		look(f, at-time.Second+time.Duration(i)*time.Millisecond, snapshot(fmt.Sprint("r", i), beat("n1", "i1", int64(7-i%2))))
	}
	if list := f.Unresponsive(at, resend, 10); len(list) != 0 {
		t.Errorf("unresponsive: %v, though its counter has not gone up", list)
	}
}
