package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestHelp keeps the texts that a person reads first.
func TestHelp(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		name := "help-" + strings.Join(append([]string{"skalds"}, path...), "-") + ".txt"
		t.Run(name, func(t *testing.T) {
			golden(t, name, want(t, 0, append(path, "--help")...).out)
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

func TestExamplesAreWhatTheCommandsTake(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "version" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		if cmd.Example != "" && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("the example of %s does not show it:\n%s", cmd.CommandPath(), cmd.Example)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args string
		says string
	}{
		"unknown command":      {"tsk", `there is no command "tsk"; did you mean task?`},
		"unknown subcommand":   {"task lst", "did you mean list?"},
		"nothing like it":      {"task frobnicate", `there is no command "frobnicate"`},
		"unknown flag":         {"task list --colour", "unknown flag: --colour"},
		"no class":             {"task submit", "CLASS is missing"},
		"no id":                {"task cancel", "ID is missing"},
		"ids and a selection":  {"task cancel a --class c --yes", "not both"},
		"no yes":               {"task pause --class c", "give --dry-run to count"},
		"yes to an id":         {"task retry a --yes", "are for flags that select tasks"},
		"both":                 {"task resume --class c --yes --dry-run", "--dry-run or --yes, not both"},
		"status of a bulk":     {"task cancel --status done --yes", `--status is "done"`},
		"names of a bulk":      {"task cancel --all --yes -o name", "is only counted"},
		"no attachments":       {"task update a", "--attachments is missing"},
		"no node":              {"nodes drain", "ID is missing"},
		"one too many":         {"task show a b", `"b" is one argument too many; it takes ID`},
		"none allowed":         {"version x", "it takes none"},
		"bad JSON":             {"task submit c -a {x:1}", "--attachments is not JSON"},
		"cut JSON":             {`task submit c -a {"x":1`, "after 6 bytes"},
		"missing file":         {"task submit c -a @testdata/nowhere.json", "no such file"},
		"priority of words":    {"task submit c --priority high", "--priority"},
		"timeout without wait": {"task submit c --timeout 3s", "give --wait too"},
		"negative timeout":     {"task wait x --timeout -1s", "want 0 or more"},
		"bad output":           {"task list -o yaml", "must be table, json or name"},
		"bad status":           {"task list --status done", `--status is "done", want one of Created, `},
		"negative limit":       {"task list --limit -1", "want 0 (all) or more"},
		"bad server":           {"nodes list --server ftp://x", `--server is "ftp://x"`},
		"port too high":        {"dev --http-port 65536", "--http-port is 65536, want a number from 0 to 65535"},
		"too many nodes":       {"dev --nodes 101", "--nodes is 101"},
		"no capacity":          {"dev --capacity 0", "--capacity is 0"},
		"strategy":             {"dev --strategy best", `--strategy is "best", want one of LEAST_TASKS`},
		"scenario":             {"bench --scenario chaos", `--scenario is "chaos"`},
		"no tasks":             {"bench --tasks 0", "--tasks is 0"},
		"too many tasks":       {"bench --tasks 1000001", "--tasks is 1000001"},
		"rate":                 {"bench --rate -1", "--rate is -1"},
		"payload":              {"bench --payload 9999999", "--payload is 9999999"},
		"batch":                {"bench --batch 1001", "--batch is 1001"},
		"bench names":          {"bench -o name", `--output is "name"`},
		"bench for ever":       {"bench --timeout 0s", "--timeout is 0s"},
		"no classes":           {"bench --classes=", "--classes"},
		"kind of limit":        {"limit set speed 1", `KIND is "speed": must be rate, namespace or pool`},
		"no number":            {"limit set rate", "N is missing"},
		"a word for N":         {"limit set rate fast", `N is "fast": must be a number of 0 or more`},
		"no real number":       {"limit set rate NaN", `N is "NaN"`},
		"part of a task":       {"limit set pool 1.5 --pool gpu", `N is "1.5"`},
		"which pool":           {"limit set pool 3", "--pool NAME"},
		"empty class":          {"limit set rate 3 --class=", "--class is empty"},
		"class and node":       {"limit remove rate --class a --node b", "give one of --class and --node"},
		"not of the kind":      {"limit set rate 1 --pool a", "--pool says nothing about a limit of the kind rate"},
		"burst of tasks":       {"limit set namespace 1 --burst 2", "--burst is for rates"},
		"pause of a word":      {"dispatcher pause resize", "it takes none"},
		"pause of no class":    {"dispatcher pause --class=", "--class is empty"},
		"limit without key":    {"task submit c --concurrency-limit 3", "give both"},
		"explain two":          {"task explain a b", "it takes ID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitUsage, strings.Fields(tt.args)...)
			if !strings.Contains(a.err, tt.says) || !strings.Contains(a.err, "--help'.") || a.out != "" {
				t.Errorf("it says %q and %q, want %q", a.out, a.err, tt.says)
			}
		})
	}
}

func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	server := "127.0.0.1:" + freePort(t)
	for _, args := range []string{
		"task submit c", "task submit c --wait", "task list", "task show x", "task wait x", "task cancel x y", "task retry x", "task pause x", "task resume x",
		"task update x -a 1", "task cancel --all --yes", "nodes drain x", "nodes undrain x", "nodes list", "nodes show x", "strategy get", "strategy set RANDOM", "health", "bench",
		"task explain x", "dispatcher status", "dispatcher pending", "dispatcher pause", "dispatcher resume --class c", "limit list", "limit set rate 1", "limit remove rate",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitUnreachable, append(strings.Fields(args), "--server", "http://"+server)...)
			if !strings.Contains(a.err, server) || !strings.Contains(a.err, "is it running?") {
				t.Errorf("it says %q", a.err)
			}
		})
	}
}

func TestServerSaysNo(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	want(t, 0, "task", "submit", "demo.echo", "--id", "once", "--wait", "--server", d.server)
	for name, tt := range map[string]struct {
		args string
		says []string
	}{
		"priority":           {"task submit c --priority 11", []string{"priority is 11: must be a whole number from 0 to 10"}},
		"two things":         {"task submit c --priority 11 --id a/b", []string{"skalds: priority is 11: ", `skalds: id is "a/b": `}},
		"id exists":          {"task submit demo.echo --id once", []string{`a task with the id "once" exists`}},
		"no task":            {"task show nowhere", []string{`there is no task with the id "nowhere"`}},
		"no task to explain": {"task explain nowhere", []string{`there is no task with the id "nowhere"`}},
		"labels":             {"task submit c --labels zone=(", []string{"does not parse at byte 5"}},
		"strategy":           {"task submit c --strategy best", []string{"must be one of", "BINPACK"}},
		"slots":              {"task submit c --slots 99999999", []string{"slots is 99999999: must be a whole number"}},
		"limit":              {"limit set namespace 99999999999", []string{"limit is 99999999999: expected number <="}},
		"rate":               {"limit set rate 1e9", []string{"perSecond is 1000000000: expected number <="}},
		"burst":              {"limit set rate 1 --burst -1", []string{"burst is -1"}},
		"no such pool":       {"limit remove pool --pool gpu", []string{`there is no pool "gpu"`}},
		"no such rate":       {"limit remove rate --class c", []string{`there is no rate of the class "c"`}},
		"no such limit":      {"limit remove namespace", []string{`there is no limit of the namespace ""`}},
		"no task wait":       {"task wait nowhere", []string{`there is no task with the id "nowhere"`}},
		"no tasks":           {"task cancel nowhere either", []string{`skalds: there is no task with the id "nowhere"`, `skalds: there is no task with the id "either"`}},
		"ended":              {"task cancel once", []string{"it has ended and cannot be cancelled"}},
		"no drain":           {"nodes drain nowhere", []string{`there is no node with the id "nowhere"`}},
		"no pause":           {"task pause once", []string{"it has ended and cannot be paused"}},
		"no update":          {"task update once -a 1", []string{"nobody would see new attachments"}},
		"no node":            {"nodes show nowhere", []string{`there is no node with the id "nowhere"`}},
		"no strategy":        {"strategy set best", []string{`strategy is "best": must be one of`}},
		"failed":             {"task submit demo.fail --wait", []string{" is Failed"}},
		"timeout":            {"task submit demo.sleep --wait --timeout 1ms", []string{"has not ended within 1ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitNo, append(strings.Fields(tt.args), "--server", d.server)...)
			for _, text := range tt.says {
				if !strings.Contains(a.err, text) {
					t.Errorf("it says %q, want %q", a.err, text)
				}
			}
		})
	}
}

func TestSubmitTakesAttachmentsFromAnywhere(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	file := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(file, []byte("  [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ flag, stdin, want string }{
		"text":  {`{"x": 1}`, "", `{"x":1}`},
		"file":  {"@" + file, "", "[1,2]"},
		"stdin": {"-", `"from a pipe"`, `"from a pipe"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := callWith(t, tt.stdin, "task", "submit", "demo.echo", "-a", tt.flag, "--wait", "-o", "json", "--server", d.server)
			if got := decode[task.Task](t, a); jsonText(got.Result) != tt.want {
				t.Errorf("the result is %s, want %s", got.Result, tt.want)
			}
		})
	}
	big := callWith(t, `"`+strings.Repeat("x", maxAttachmentsFile)+`"`, "task", "submit", "c", "-a", "-", "--server", d.server)
	if big.code != exitUsage || !strings.Contains(big.err, "which no server takes") {
		t.Errorf("%d bytes of attachments: %d, %s", maxAttachmentsFile, big.code, big.err)
	}
}

func TestTaskList(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	list := func(args ...string) []string {
		a := want(t, 0, append(append([]string{"task", "list", "--server", d.server}, args...), "-o", "name")...)
		ids := strings.Fields(a.out)
		slices.Sort(ids)
		return ids
	}
	for _, id := range []string{"a-1", "a-2", "b-1"} {
		want(t, 0, "task", "submit", "demo.echo", "--id", id, "--wait", "--server", d.server)
	}
	want(t, exitNo, "task", "submit", "demo.fail", "--id", "b-2", "--wait", "--server", d.server)
	want(t, 0, "task", "submit", "nobody.knows.it", "--id", "b-3", "--server", d.server)
	for name, tt := range map[string]struct {
		args string
		want string
	}{
		"all":      {"", "a-1 a-2 b-1 b-2 b-3"},
		"no limit": {"--limit 0", "a-1 a-2 b-1 b-2 b-3"},
		"prefix":   {"--id-prefix a-", "a-1 a-2"},
		"status":   {"--status failed,CREATED", "b-2 b-3"},
		"class":    {"--class demo.fail", "b-2"},
		"executor": {"--executor nobody", ""},
		"both":     {"--class demo.echo --id-prefix b", "b-1"},
	} {
		if got := strings.Join(list(strings.Fields(tt.args)...), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	if got := list("--limit", "2"); len(got) != 2 {
		t.Errorf("--limit 2 gives %q", got)
	}
	if got := decode[[]task.Task](t, want(t, 0, "task", "list", "-o", "json", "--server", d.server)); len(got) != 5 {
		t.Errorf("%d tasks as JSON, want 5", len(got))
	}
	if got := decode[[]task.Task](t, want(t, 0, "task", "list", "-o", "json", "--executor", "nobody", "--server", d.server)); len(got) != 0 {
		t.Errorf("%d tasks of nobody", len(got))
	}
	lines := strings.Split(want(t, 0, "task", "list", "--id-prefix", "b-3", "--server", d.server).out, "\n")
	if !slices.Equal(strings.Fields(lines[0]), []string{"ID", "CLASS", "STATUS", "PRIORITY", "EXECUTOR", "ATTEMPT", "AGE", "DURATION"}) ||
		!strings.HasPrefix(lines[1], "b-3  nobody.knows.it  Created  0 ") {
		t.Errorf("the table is\n%s", strings.Join(lines, "\n"))
	}
}

// TestTaskListFollowsCursors lists more tasks than a page holds.
func TestTaskListFollowsCursors(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	c, err := client.New(client.Config{Server: d.server})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const n = 2*maxPage + 1
	for left := n; left > 0; left -= maxPage {
		batch := make([]client.NewTask, min(left, maxPage))
		for i := range batch {
			batch[i].ClassName = "later"
		}
		if _, err := c.SubmitBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[string]int{"0": n, "1001": 1001, "5000": n} {
		a := call(t, "task", "list", "--limit", limit, "-o", "name", "--server", d.server)
		ids := strings.Fields(a.out)
		slices.Sort(ids)
		if got := len(slices.Compact(ids)); got != want {
			t.Errorf("--limit %s gives %d tasks, want %d", limit, got, want)
		}
	}
	table := want(t, 0, "task", "list", "--limit", "0", "--server", d.server).out
	if heads := strings.Count(table, "EXECUTOR"); heads != 1 || strings.Count(table, "\n") != n+1 {
		t.Errorf("%d heads and %d lines for %d tasks", heads, strings.Count(table, "\n"), n)
	}
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	server := []string{"--server", d.server}
	on := func(args ...string) []string { return append(args, server...) }
	want(t, 0, on("task", "submit", "demo.sleep", "-a", `{"ms":600000}`, "--id", "long")...)
	awaitStatus(t, d.server, "long", task.Running)
	if a := want(t, 0, on("task", "cancel", "long")...); !strings.Contains(a.out, "long") {
		t.Errorf("the answer is %q", a.out)
	}
	want(t, exitNo, on("task", "wait", "long")...)
	if got := awaitStatus(t, d.server, "long", task.Cancelled); got.Attempt != 1 {
		t.Errorf("attempt %d", got.Attempt)
	}
	if a := want(t, 0, on("task", "retry", "long", "-o", "name")...); a.out != "long\n" {
		t.Errorf("the answer is %q", a.out)
	}
	if got := awaitStatus(t, d.server, "long", task.Running); got.Attempt != 2 {
		t.Errorf("attempt %d after a retry", got.Attempt)
	}
	want(t, exitNo, on("task", "retry", "long")...)
	want(t, 0, on("task", "cancel", "long")...)
	awaitStatus(t, d.server, "long", task.Cancelled)
}

func TestPauseResumeAndUpdate(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	on := func(args ...string) []string { return append(args, "--server", d.server) }
	want(t, 0, on("task", "submit", "demo.progress", "-a", `{"steps":10000,"ms":10}`, "--id", "long")...)
	awaitStatus(t, d.server, "long", task.Running)
	if a := want(t, 0, on("task", "pause", "long")...); !strings.Contains(a.out, "Running (to be Paused)") {
		t.Errorf("the answer is %q", a.out)
	}
	awaitStatus(t, d.server, "long", task.Paused)
	if a := want(t, 0, on("task", "update", "long", "-a", `{"steps":1,"ms":10}`)...); !strings.Contains(a.out, `{"steps":1,"ms":10}`) {
		t.Errorf("the answer is %q", a.out)
	}
	want(t, 0, on("task", "resume", "long")...)
	if got := awaitStatus(t, d.server, "long", task.Finished); got.Attempt != 1 {
		t.Errorf("attempt %d", got.Attempt)
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	on := func(args ...string) []string { return append(args, "--server", d.server) }
	for _, id := range []string{"a-1", "a-2", "b-1"} {
		want(t, 0, on("task", "submit", "later", "--id", id)...)
	}
	for _, step := range []struct{ args, says string }{
		{"task pause --id-prefix a- --dry-run", "2 of 2 tasks would be paused, 0 skipped\n"},
		{"task pause --id-prefix a- --yes", "2 of 2 tasks paused, 0 skipped\n"},
		{"task pause --class later --yes", "1 of 3 tasks paused, 2 skipped\n"},
		{"task resume --all --yes", "3 of 3 tasks resumed, 0 skipped\n"},
		{"task cancel --status created --class later --yes", "3 of 3 tasks cancelled, 0 skipped\n"},
		{"task retry --status cancelled --id-prefix b --yes", "1 of 1 tasks retried, 0 skipped\n"},
	} {
		if a := want(t, 0, on(strings.Fields(step.args)...)...); a.out != step.says {
			t.Errorf("%s says %q, want %q", step.args, a.out, step.says)
		}
	}
	if got := decode[client.BulkResult](t, want(t, 0, on("task", "cancel", "--all", "--dry-run", "-o", "json")...)); got != (client.BulkResult{Matched: 3, Changed: 1, Skipped: 2}) {
		t.Errorf("%+v", got)
	}
}

func TestNodesDrain(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	state := func(want string) {
		t.Helper()
		for begin := time.Now(); time.Since(begin) < patience; {
			if n := decode[client.Node](t, call(t, "nodes", "show", "node-1", "-o", "json", "--server", d.server)); n.State == want {
				return
			}
		}
		t.Fatalf("the node never was %s", want)
	}
	if a := want(t, 0, "nodes", "drain", "node-1", "--server", d.server); a.out != "node-1: draining\n" {
		t.Errorf("the answer is %q", a.out)
	}
	state("draining")
	want(t, 0, "task", "submit", "demo.echo", "--id", "t", "--server", d.server)
	if a := want(t, 0, "nodes", "undrain", "node-1", "-o", "name", "--server", d.server); a.out != "node-1\n" {
		t.Errorf("the answer is %q", a.out)
	}
	state("online")
	want(t, 0, "task", "wait", "t", "--server", d.server)
}

func TestStrategy(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--strategy", "round-robin")
	get := func() string { return want(t, 0, "strategy", "get", "-o", "name", "--server", d.server).out }
	if got := get(); got != "ROUND_ROBIN\n" {
		t.Errorf("it starts with %q", got)
	}
	for range 2 {
		for _, id := range []string{"node-1", "node-2"} { // the two take turns
			got := decode[task.Task](t, want(t, 0, "task", "submit", "demo.echo", "--wait", "-o", "json", "--server", d.server))
			if got.Executor == "" {
				t.Errorf("no executor where %s may be", id)
			}
		}
	}
	counts := map[string]int{}
	for _, got := range decode[[]task.Task](t, want(t, 0, "task", "list", "-o", "json", "--server", d.server)) {
		counts[got.Executor]++
	}
	if counts["node-1"] != 2 || counts["node-2"] != 2 {
		t.Errorf("the nodes did not take turns: %v", counts)
	}
	if a := want(t, 0, "strategy", "set", "random", "-o", "name", "--server", d.server); a.out != "RANDOM\n" {
		t.Errorf("set answers %q", a.out)
	}
	if got := get(); got != "RANDOM\n" {
		t.Errorf("it is %q then", got)
	}
	if a := want(t, 0, "strategy", "get", "--server", d.server); !regexp.MustCompile(`Strategy +RANDOM\n`).MatchString(a.out) ||
		!regexp.MustCompile(`Placed +4\n`).MatchString(a.out) {
		t.Errorf("the table is\n%s", a.out)
	}
}

func TestNodesShow(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1", "--capacity", "3")
	a := want(t, 0, "nodes", "show", "node-1", "--server", d.server)
	if !strings.Contains(a.out, "room for 3, and 3 queued") || !strings.Contains(a.out, "demo.echo") {
		t.Errorf("it shows\n%s", a.out)
	}
	if n := decode[client.Node](t, want(t, 0, "nodes", "show", "node-1", "-o", "json", "--server", d.server)); n.Capacity != 3 {
		t.Errorf("as JSON it is %+v", n)
	}
	if a := want(t, 0, "nodes", "list", "-o", "name", "--server", d.server); a.out != "node-1\n" {
		t.Errorf("the names are %q", a.out)
	}
}

func TestInterruptedClient(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	want(t, 0, "task", "submit", "later", "--id", "never", "--server", d.server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"task", "wait", "never", "--server", d.server}, strings.NewReader(""), &out, &errs); code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if errs.String() != "interrupted\n" || out.Len() > 0 {
		t.Errorf("it says %q and %q", out.String(), errs.String())
	}
}

func TestAnswerThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"version"}, strings.NewReader(""), failingWriter{}, &errs); code != exitNo {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if a := want(t, 0, "version"); !strings.HasPrefix(a.out, "skalds dev (go1.") {
		t.Errorf("it says %q", a.out)
	}
}
