package fleet_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// A claim that a node has begun is missing only from a list that was made after the node had it for certain.
func TestMissingClaims(t *testing.T) {
	t.Parallel()
	report := func(kind task.Kind, beat int64) func(f *fleet.Fleet) {
		return func(f *fleet.Fleet) {
			f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: kind, Heartbeat: beat})
		}
	}
	held := []registry.HeldTask{{ID: "t1", Attempt: 1, ClaimID: "c1", State: task.ReportFinished}}
	for name, c := range map[string]struct {
		inherited, begun bool // the store showed it when the leadership began
		then             func(f *fleet.Fleet)
		counter, term    int64
		tasks            []registry.HeldTask
		want             bool
	}{
		"a newer list":                         {then: report(task.ReportStarted, 5), counter: 6, want: true},
		"a list as old as the report":          {then: report(task.ReportStarted, 5), counter: 5},
		"an older list":                        {then: report(task.ReportStarted, 5), counter: 4},
		"a list that holds it":                 {then: report(task.ReportStarted, 5), counter: 6, tasks: held},
		"its end is known":                     {then: report(task.ReportFinished, 5), counter: 6},
		"it was not reported":                  {counter: 6, term: 9},
		"the node does not say its heartbeats": {then: report(task.ReportStarted, 0), counter: 6},
		"it is gone":                           {then: func(f *fleet.Fleet) { report(task.ReportStarted, 5)(f); f.Reassign(n1, 0) }, counter: 6},
		"inherited, the term was seen":         {inherited: true, begun: true, counter: 1, term: 7, want: true},
		"inherited, the term was not seen":     {inherited: true, begun: true, counter: 100, term: 6},
		"inherited, it had not begun":          {inherited: true, counter: 100, term: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			f.BeginCompare()
			var have []fleet.Held
			if c.inherited {
				have = append(have, fleet.Held{Claim: claim(n1, 1), Started: c.begun})
			}
			f.EndCompare(have)
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			if !c.inherited {
				hold(f)
			}
			if c.then != nil {
				c.then(f)
			}
			// What a later comparison finds is not inherited.
			f.BeginCompare()
			f.EndCompare([]fleet.Held{{Claim: claim(n1, 1), Started: c.begun}, {Claim: claim(n1, 2), Started: true}})
			n := beat("n1", "i1", c.counter)
			n.Term, n.Tasks = c.term, append([]registry.HeldTask{{ID: "x", ClaimID: "other"}}, c.tasks...)
			got := f.Missing(&n, 7)
			if (len(got) == 1 && got[0].ID == "c1") != c.want || len(got) > 1 {
				t.Errorf("missing %v, want %v", got, c.want)
			}
		})
	}
}

// Nodes with something to do are compared in turn; those without are never compared.
func TestEachNodeIsComparedInItsTurn(t *testing.T) {
	t.Parallel()
	f := newFleet()
	var nodes []registry.Node
	for i := range 10 {
		n := beat(fmt.Sprint("n", i), "i", 1)
		n.Running = i % 2
		if i == 9 {
			n.Mode = registry.ModeEdge
		}
		nodes = append(nodes, n)
	}
	look(f, 0, snapshot("r", nodes...))
	var got []string
	for range 4 {
		for _, k := range f.ToCompare(2) {
			got = append(got, k.Node)
		}
	}
	if want := []string{"n1", "n3", "n5", "n7", "n1", "n3", "n5", "n7"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	look(f, time.Second, snapshot("r"))
	if got := f.ToCompare(2); len(got) != 0 {
		t.Errorf("%v, who are not there", got)
	}
}

func TestOrphansAreUnknownAndHaveNotEnded(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	n := beat("n1", "i1", 2)
	n.Tasks = []registry.HeldTask{
		{ID: "t1", ClaimID: "c1", State: task.ReportStarted}, {ID: "t2", ClaimID: "c2", State: task.ReportFinished},
		{ID: "t3", ClaimID: "c3", State: task.ReportProgress}, {ID: "t4", ClaimID: "c4"},
	}
	var got []string
	for _, h := range f.Orphans(&n) {
		got = append(got, h.ClaimID)
	}
	if !slices.Equal(got, []string{"c3", "c4"}) {
		t.Errorf("unknown %v", got)
	}
}
