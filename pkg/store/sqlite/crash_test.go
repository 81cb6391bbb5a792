package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// asWriter has the test binary write into the file that it names, and say what was acknowledged, until it is killed.
const asWriter = "SKALDS_TEST_WRITE"

// writeUntilKilled lets several goroutines take tasks through their lives. After each call that was acknowledged a line
// says of each task of it how far it has come at the least.
func writeUntilKilled(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{Sync: SyncNormal})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	say := func(tasks []task.Task) {
		var b strings.Builder
		for i := range tasks {
			fmt.Fprintf(&b, "%s %d\n", tasks[i].ID, number(tasks[i].LifecycleStatus))
		}
		out.Lock()
		defer out.Unlock()
		if _, err := os.Stdout.WriteString(b.String()); err != nil {
			os.Exit(1) // nobody listens
		}
	}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				writeLives(ctx, s, fmt.Sprintf("p%d-%d-%d", os.Getpid(), k, i), say)
			}
		})
	}
	wg.Wait()
}

func writeLives(ctx context.Context, s *Store, prefix string, say func([]task.Task)) {
	tasks := make([]task.Task, 1+rand.IntN(20))
	for i := range tasks {
		tasks[i] = waits(i)
		tasks[i].ID = fmt.Sprintf("%s-%d", prefix, i)
		if rand.IntN(10) == 0 {
			tasks[i].Attachments = []byte(`"` + strings.Repeat("x", 20_000) + `"`)
		}
	}
	if out, err := s.Create(ctx, tasks); err != nil || out[0].Status != store.CreateOK {
		panic(fmt.Sprint(out, err))
	}
	say(tasks)
	for _, next := range []func(*task.Task) task.Change{
		func(t *task.Task) task.Change { return task.Claim(t, "n1", "i1", "c-"+t.ID, 5) },
		func(t *task.Task) task.Change {
			r := task.Report{ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID, Kind: task.ReportFinished, Result: []byte(`{"ok":true}`)}
			return r.Changes(7)[0]
		},
	} {
		changes := make([]task.Change, len(tasks))
		for i := range tasks {
			changes[i] = next(&tasks[i])
			changes[i].Apply(&tasks[i])
		}
		if n, err := s.Apply(ctx, changes); err != nil || n != len(tasks) {
			panic(fmt.Sprint(n, err))
		}
		say(tasks)
	}
}

// TestCrash kills a process that writes, at a moment of chance, over and over: what it acknowledged is there, and the
// file is whole.
func TestCrash(t *testing.T) {
	t.Parallel()
	const rounds = 20
	path := filepath.Join(t.TempDir(), "skalds.db")
	acknowledged := make(map[string]int64)
	for round := range rounds {
		killWriter(t, path, acknowledged)
		s, err := Open(t.Context(), path, Options{Sync: SyncNormal})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got := s.sql(t, "PRAGMA integrity_check"); len(got) != 1 || got[0] != "ok" {
			t.Errorf("round %d: the file is damaged: %v", round, got)
		}
		checkAcknowledged(t, s, acknowledged)
		closeTest(t, s)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if len(acknowledged) < rounds {
		t.Errorf("only %d tasks were acknowledged in all rounds", len(acknowledged))
	}
}

// killWriter starts a writer, kills it after some lines, and notes what it has said.
func killWriter(t *testing.T, path string, acknowledged map[string]int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asWriter + "=" + path}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for left := 1 + rand.IntN(1500); ; left-- {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what it was saying when it was killed does not count
		}
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		status, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		acknowledged[id] = status
		if left == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if errs.Len() > 0 {
		t.Fatalf("the writer failed: %s", errs.String())
	}
}

func checkAcknowledged(t *testing.T, s *Store, acknowledged map[string]int64) {
	t.Helper()
	there := make(map[string]int64, len(acknowledged))
	for f := (store.Filter{Limit: store.MaxBatch}); ; {
		page, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Tasks {
			tk := &page.Tasks[i]
			there[tk.ID] = number(tk.LifecycleStatus)
			if tk.LifecycleStatus == task.Finished && string(tk.Result) != `{"ok":true}` || len(tk.Attachments) == 0 {
				t.Errorf("task %s: result %q, attachments of %d bytes", tk.ID, tk.Result, len(tk.Attachments))
			}
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	for id, status := range acknowledged {
		if got, ok := there[id]; !ok || got < status {
			t.Errorf("task %s: status %d, there %t; acknowledged was %d", id, got, ok, status)
		}
	}
}
