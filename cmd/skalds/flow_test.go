package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestTheHelpOfAnExplanationHelps does what keeps a task waiting, asks why it waits, and does what the answer says:
// then the task ends.
func TestTheHelpOfAnExplanationHelps(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	call := func(line string) answered {
		t.Helper()
		return want(t, 0, append(words(line), "--server", d.server)...)
	}
	for _, tt := range []struct {
		id     string
		before []string
		submit string
		after  []string // the task was submitted
		reason string
		says   string
		undo   string // what the help does not undo
	}{
		{id: "all", before: []string{"dispatcher pause"}, reason: "DISPATCHER_PAUSED", says: "The dispatcher is paused."},
		{id: "class", before: []string{"dispatcher pause --class demo.echo"}, reason: "CLASS_PAUSED", says: "The class demo.echo is paused."},
		{id: "namespace", before: []string{"dispatcher pause --namespace 'my shop'"}, submit: "--namespace 'my shop'", reason: "NAMESPACE_PAUSED", says: "The namespace my shop is paused."},
		{id: "none", before: []string{"dispatcher pause --namespace ''"}, reason: "NAMESPACE_PAUSED", says: "Tasks without a namespace are paused."},
		{id: "pool", submit: "--pool 'my gpu'", reason: "POOL_UNKNOWN", says: `There is no pool "my gpu".`},
		{id: "closed", before: []string{"limit set pool 0 --pool cpu"}, submit: "--pool cpu", reason: "POOL_LIMIT", says: "No task of the pool cpu may be on a node: the limit is 0."},
		{id: "limit", before: []string{"limit set namespace 0 --namespace shop"}, submit: "--namespace shop", reason: "NAMESPACE_LIMIT", says: "No task of the namespace shop may be on a node"},
		{id: "rate", before: []string{"limit set rate 0"}, reason: "RATE_LIMIT", says: "No tasks may start: their rate is 0.", undo: "limit remove rate"},
		{id: "class-rate", before: []string{"limit set rate 0 --class demo.echo"}, reason: "CLASS_RATE_LIMIT", says: "No tasks of the class demo.echo may start", undo: "limit remove rate --class demo.echo"},
		{id: "paused", before: []string{"dispatcher pause"}, after: []string{"task pause paused", "dispatcher resume"}, reason: "PAUSED", says: "A person has paused it; no node holds it."},
		{id: "cancelled", before: []string{"dispatcher pause"}, after: []string{"task cancel cancelled", "dispatcher resume"}, reason: "ENDED", says: "before it ran: Cancelled."},
	} {
		for _, line := range tt.before {
			call(line)
		}
		call("task submit demo.echo --id " + tt.id + " " + tt.submit)
		for _, line := range tt.after {
			call(line)
		}
		e := decode[client.Explanation](t, call("task explain -o json "+tt.id))
		if e.Reason != tt.reason || !strings.Contains(e.Text, tt.says) {
			t.Errorf("%s: %s %q, want %s %q", tt.id, e.Reason, e.Text, tt.reason, tt.says)
		}
		if table := call("task explain " + tt.id).out; !strings.HasPrefix(table, e.Text[:10]) || !strings.Contains(table, e.Help) {
			t.Errorf("%s: the table is\n%s", tt.id, table)
		}
		_, command, ok := strings.Cut(e.Help[strings.LastIndex(e.Help, ": "):], ": skalds ")
		if !ok {
			t.Fatalf("%s: %q names no command", tt.id, e.Help)
		}
		call(strings.Replace(command, " N", " 5", 1))
		call("task wait --timeout 30s " + tt.id)
		if e := decode[client.Explanation](t, call("task explain -o json "+tt.id)); e.Reason != "ENDED" || e.Help != "See its result: skalds task show "+tt.id {
			t.Errorf("%s: %+v at the end", tt.id, e)
		}
		if tt.undo != "" {
			call(tt.undo)
		}
	}
}

func TestDispatcherAndLimitsOfACluster(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	call := func(line string) string {
		t.Helper()
		return want(t, 0, append(words(line), "--server", d.server)...).out
	}
	if got := call("limit list"); got != "No limits and no pauses.\n" {
		t.Errorf("at first: %q", got)
	}
	if got := call("dispatcher pending"); got != "No task waits.\n" {
		t.Errorf("at first: %q", got)
	}
	call("limit set rate 100 --burst 7")
	call("limit set rate 0.5 --class mail")
	call("limit set rate 3 --node '*'")
	call("limit set namespace 4 --namespace shop")
	call("limit set namespace 2")
	call("limit set pool 3 --pool gpu")
	call("dispatcher pause --class mail")
	golden(t, "limits.txt", call("dispatcher pause --namespace ''"))
	if got := call("limit list -o name"); got != "class mail\nnamespace \"\"\nall tasks\nclass mail\nnode *\nnamespace \"\"\nnamespace \"shop\"\npool gpu\n" {
		t.Errorf("the names are\n%s", got)
	}
	call("dispatcher resume --class mail")
	call("dispatcher resume --namespace ''")
	call("limit remove rate")
	call("limit remove rate --class mail")
	call("limit remove rate --node '*'")
	call("limit remove namespace")
	call("limit remove namespace --namespace shop")
	if got := call("limit remove pool --pool gpu"); got != "No limits and no pauses.\n" {
		t.Errorf("at the end: %q", got)
	}
	for range 3 {
		call("task submit no.such.class")
	}
	call("task submit no.other.class")
	call("task submit demo.echo --slots 99")
	p := decode[client.Pending](t, awaitKnown(t, func() answered { return want(t, 0, "dispatcher", "pending", "-o", "json", "--server", d.server) }))
	if p.Total != 5 || len(p.Groups) != 2 || p.Groups[0].Tasks != 4 || p.Groups[0].Queues != 2 || p.Groups[0].Reason != "NO_NODE_FOR_CLASS" || p.Groups[1].Reason != "SLOTS_OVER_CAPACITY" {
		t.Errorf("%+v", p)
	}
	golden(t, "pending.txt", call("dispatcher pending"))
	if got := call("dispatcher pending -o name"); got != "NO_NODE_FOR_CLASS\nSLOTS_OVER_CAPACITY\n" {
		t.Errorf("the names are\n%s", got)
	}
}

// awaitKnown asks until the dispatcher has looked at all queues.
func awaitKnown(t *testing.T, ask func() answered) answered {
	t.Helper()
	for until := time.Now().Add(patience); ; {
		a := ask()
		if !strings.Contains(a.out, "READY") && !strings.Contains(a.out, "NOT_LOOKED_AT") {
			return a
		}
		if time.Now().After(until) {
			t.Fatalf("queues are never looked at:\n%s", a.out)
		}
	}
}

func TestSubmitSaysWhereAndWhen(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	got := decode[task.Task](t, want(t, 0, "task", "submit", "resize", "--labels", "zone=a,!spot", "--strategy", "sticky", "--sticky-key", "s", "--anti-affinity-key", "a",
		"--slots", "2", "--concurrency-key", "c", "--concurrency-limit", "3", "--pool", "gpu", "--namespace", "shop", "--priority", "7", "-o", "json", "--server", d.server))
	have := []any{got.Selector, got.Strategy, got.StickyKey, got.AntiAffinityKey, got.Slots, got.ConcurrencyKey, got.ConcurrencyLimit, got.Pool, got.Namespace, got.Priority}
	if expected := []any{"zone=a,!spot", "STICKY", "s", "a", 2, "c", 3, "gpu", "shop", 7}; !slices.Equal(have, expected) {
		t.Errorf("stored as %v, want %v", have, expected)
	}
}

func TestPrintExplanation(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	e := client.Explanation{ID: "a", Status: task.Created, Reason: "NODES_RATE_LIMITED", Text: "Every node\x1b[2J is busy.", Help: "Wait.", Until: now.Add(1500 * time.Millisecond).UnixMilli(), Queue: "5|shop|resize",
		Placement: &client.Placement{Strategy: "LEAST_TASKS", Nodes: 36, NoClass: 1, NoLabels: 2, TooSmall: 3, AntiAffinity: 4, Avoided: 5, RateLimited: 6, Kept: 7, Full: 8,
			Best: []client.NodeScore{{Node: "n1", Score: "1 of 4 slots in use"}, {Node: "n2", Score: "2 of 4 slots in use"}}},
		NotTaking: map[string]string{"n9": "draining", "n8": "set aside: it starts nothing"}}
	var out bytes.Buffer
	if err := printExplanation(&out, asTable, &e, now); err != nil {
		t.Fatal(err)
	}
	golden(t, "explanation.txt", out.String())
	out.Reset()
	if err := printExplanation(&out, asName, &e, now); err != nil || out.String() != "NODES_RATE_LIMITED\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestPrintDispatcher(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	d := client.Dispatcher{Strategy: "BINPACK", Leader: client.Leader{Address: "host:8000", Term: 7}, IsLeader: true, IntervalMs: 5000, Rounds: 12345, Placed: 98765,
		Failed: 2, Lost: 1, Waiting: map[string]int{"READY": 1, "NODES_FULL": 3}, LastRoundAt: now.UnixMilli() - 250, LastRound: client.Round{Placed: 10, Failed: 1, TookMs: 3},
		Throttle: client.Throttle{Unstarted: 900, MaxPending: 1000, Step: 5, MaxBacklog: 1_000_000}, Settings: &client.Settings{Paused: true}, Nodes: 40}
	var out bytes.Buffer
	if err := printDispatcher(&out, asTable, &d, now); err != nil {
		t.Fatal(err)
	}
	golden(t, "dispatcher.txt", out.String())
}
