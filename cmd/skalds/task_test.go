package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

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
