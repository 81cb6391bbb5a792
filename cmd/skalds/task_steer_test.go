package main

import (
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

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
