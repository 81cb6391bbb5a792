package task_test

import (
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// every is each event, in order.
var every = []task.Event{
	task.EventClaim, task.EventUnclaim, task.EventReject, task.EventStart, task.EventFinish, task.EventFail, task.EventFailAgain,
	task.EventRefuse, task.EventCancel, task.EventRelease, task.EventLose, task.EventPause, task.EventResume, task.EventUnhold,
	task.EventRetry,
}

// TestNext holds the whole life cycle a second time, as one row for each event with what each status becomes by it; ""
// is "not accepted".
func TestNext(t *testing.T) {
	t.Parallel()
	const no = task.Status("")
	rows := map[task.Event][7]task.Status{
		// Created, Assigning, Running, Paused, Finished, Failed, Cancelled
		task.EventClaim:     {task.Assigning, no, no, no, no, no, no},
		task.EventUnclaim:   {no, task.Created, no, no, no, no, no},
		task.EventReject:    {no, task.Created, no, no, no, no, no},
		task.EventStart:     {no, task.Running, task.Running, no, no, no, no},
		task.EventFinish:    {no, task.Finished, task.Finished, task.Finished, no, no, no},
		task.EventFail:      {no, task.Failed, task.Failed, task.Failed, no, no, no},
		task.EventFailAgain: {no, task.Created, task.Created, task.Paused, no, no, no},
		task.EventRefuse:    {task.Failed, no, no, task.Failed, no, no, no},
		task.EventCancel:    {task.Cancelled, task.Cancelled, task.Cancelled, task.Cancelled, no, no, no},
		task.EventRelease:   {no, task.Created, task.Created, task.Paused, no, no, no},
		task.EventLose:      {no, task.Created, task.Created, task.Paused, no, no, no},
		task.EventPause:     {task.Paused, task.Paused, task.Paused, task.Paused, no, no, no},
		task.EventResume:    {no, task.Running, task.Running, task.Running, no, no, no},
		task.EventUnhold:    {no, no, no, task.Created, no, no, no},
		task.EventRetry:     {no, no, no, no, task.Created, task.Created, task.Created},
	}
	if len(rows) != len(every) {
		t.Fatalf("the table has %d events, the package %d", len(rows), len(every))
	}
	for _, e := range every {
		for i, from := range task.All() {
			want, accepted := rows[e][i], rows[e][i] != no
			if !accepted {
				want = from
			}
			if got, ok := task.Next(from, e); got != want || ok != accepted {
				t.Errorf("Next(%s, %s) = %s, %t; want %s, %t", from, e, got, ok, want, accepted)
			}
		}
	}
}

func TestNextOfTheUnknown(t *testing.T) {
	t.Parallel()
	if got, ok := task.Next("Sleeping", task.EventClaim); ok || got != "Sleeping" {
		t.Errorf("an unknown status: %s, %t", got, ok)
	}
	after := task.EventRetry + 1
	if got, ok := task.Next(task.Created, after); ok || got != task.Created {
		t.Errorf("an unknown event: %s, %t", got, ok)
	}
	if after.String() != "unknown event" {
		t.Errorf("there is an event after retry: %s; add it to this test", after)
	}
}

func TestEventNames(t *testing.T) {
	t.Parallel()
	seen := map[string]task.Event{}
	for _, e := range every {
		name := e.String()
		if other, ok := seen[name]; ok || name == "" {
			t.Errorf("event %d is named %q, and so is event %d", e, name, other)
		}
		seen[name] = e
	}
}

func TestStatusKinds(t *testing.T) {
	t.Parallel()
	for _, s := range task.All() {
		waits := s == task.Created
		kinds := 0
		for _, is := range []bool{waits, s.Active(), s.Terminal()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("%s is %d of waiting, active, terminal; want exactly one", s, kinds)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, in string
		want     task.Status
		ok       bool
	}{
		{"as written", "Running", task.Running, true},
		{"lower case", "cancelled", task.Cancelled, true},
		{"upper case", "CREATED", task.Created, true},
		{"empty", "", "", false},
		{"unknown", "Sleeping", "", false},
		{"with blanks", " Running", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := task.ParseStatus(c.in); got != c.want || ok != c.ok {
				t.Errorf("ParseStatus(%q) = %q, %t; want %q, %t", c.in, got, ok, c.want, c.ok)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	set := task.Set(task.Failed, task.Created, task.Failed)
	if got := set.List(); len(got) != 2 || got[0] != task.Created || got[1] != task.Failed {
		t.Errorf("List = %v; want Created, Failed", got)
	}
	if set.Has("Sleeping") || set.Has("") {
		t.Error("a set has an unknown status")
	}
	if got := task.Set(task.All()...).List(); len(got) != 7 {
		t.Errorf("the set of all has %d", len(got))
	}
	if task.Set(task.Finished, task.Failed, task.Cancelled) != task.Terminal {
		t.Error("Terminal is not the set of the terminal statuses")
	}
}
