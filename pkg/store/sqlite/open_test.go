package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/lockfile"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestKeptOverARestart: everything but the leadership, whose holder is dead.
func TestKeptOverARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%c?d#.db")
	s := openTest(t, path)
	tk := waits(1)
	mustCreate(t, s, tk)
	lead := store.Leader{Holder: "c1", Address: "h:1", Mode: "DISPATCHER", Term: 4, Counter: 9}
	swapped, err := s.SwapLeader(t.Context(), store.Leader{}, lead)
	positions := map[int]store.Position{3: {Offset: 7, Check: 1 << 63}}
	set, settingsErr := s.SwapDispatcher(t.Context(), store.Dispatcher{Strategy: "RANDOM"})
	err = errors.Join(err, s.SavePositions(t.Context(), "t", positions), settingsErr)
	if err != nil || !swapped || !set {
		t.Fatal(swapped, set, err)
	}
	closeTest(t, s)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 2 {
		t.Errorf("a closed store leaves %v, %v; want the file and its lock", left, err)
	}

	s = openTest(t, path)
	if got := mustGet(t, s, tk.ID); got.LifecycleStatus != task.Created {
		t.Errorf("the task is %+v", got)
	}
	if got, err := s.Leader(t.Context()); err != nil || got != (store.Leader{Term: 4, Counter: 10}) {
		t.Errorf("the leader is %+v, %v", got, err)
	}
	if got, err := s.Positions(t.Context(), "t"); err != nil || fmt.Sprint(got) != fmt.Sprint(positions) {
		t.Errorf("the positions are %v, %v", got, err)
	}
	if got, err := s.Dispatcher(t.Context()); err != nil || got.Strategy != "RANDOM" {
		t.Errorf("the settings are %v, %v", got, err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "skalds.db")
	s := openTest(t, path)
	_, err := Open(t.Context(), path, Options{})
	if !errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("error %v", err)
	}
	closeTest(t, s)
	openTest(t, path)
}

func TestFilesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	foreign := func(t *testing.T, path string, sql string) {
		t.Helper()
		c, err := dial(t.Context(), path)
		if err == nil {
			_, err = c.exec(sql)
		}
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ours := func(t *testing.T, path string) *Store {
		t.Helper()
		s := openTest(t, path)
		for i := 0; i < 4000; i += 1000 {
			tasks := make([]task.Task, 1000)
			for k := range tasks {
				tasks[k] = waits(i + k)
			}
			mustCreate(t, s, tasks...)
		}
		return s
	}
	cases := map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"of another program":    {func(t *testing.T, path string) { foreign(t, path, "CREATE TABLE a (b)") }, "of another program"},
		"of another program, 2": {func(t *testing.T, path string) { foreign(t, path, "PRAGMA application_id = 1") }, "of another program"},
		"newer": {func(t *testing.T, path string) {
			closeTest(t, openTest(t, path))
			foreign(t, path, "PRAGMA user_version = 99")
		}, "version 99, and this program knows 2: it was written by a newer version"},
		"no database": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("something else ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no SQLite database"},
		"a directory": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "cannot be opened"},
		"damaged": {func(t *testing.T, path string) {
			closeTest(t, ours(t, path))
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte(strings.Repeat("garbage ", 50_000)), 4096)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "the file is damaged"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "skalds.db")
			c.prepare(t, path)
			for range 2 { // what failed holds no lock
				s, err := Open(t.Context(), path, Options{})
				if err == nil {
					closeTest(t, s)
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("error %v; want %q", err, c.want)
				}
			}
		})
	}
	t.Run("no directory", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "no", "skalds.db")
		if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	})
}

// TestMigrations: a file of an older version is brought up to date with all that is in it, or stays as it is.
func TestMigrations(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	steps := []string{"CREATE TABLE a (b); INSERT INTO a VALUES (7)", "ALTER TABLE a ADD COLUMN c; UPDATE a SET c = b + 1", "CREATE TABLE d (e); CREATE TABLE a (twice)"}
	for _, n := range []int{1, 1, 2, 2} {
		if err := migrate(c, steps[:n]); err != nil {
			t.Fatal(err)
		}
		if v, err := c.number("PRAGMA user_version"); err != nil || v != int64(n) {
			t.Fatalf("version %d, %v; want %d", v, err, n)
		}
	}
	if v, err := c.number("SELECT c FROM a"); err != nil || v != 8 {
		t.Errorf("%d, %v", v, err)
	}
	if err := migrate(c, steps); err == nil {
		t.Error("a step that fails is no error")
	}
	if v, err := c.number("SELECT count(*) FROM sqlite_schema"); err != nil || v != 1 {
		t.Errorf("a step that failed left %d tables, %v", v, err)
	}
	if err := migrate(c, steps[:1]); !errors.Is(err, errNewer) {
		t.Errorf("back again: %v", err)
	}
}

// TestFileOfVersion1: its index of desired states gets its present name, and what its tasks hold that this version does
// not know stays.
func TestFileOfVersion1(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "skalds.db")
	c, err := dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	const spec = `{"name":"n","shard":"1/4","scheduleId":"s","traceparent":"00-aa-bb-01"}`
	if err := migrate(c, migrations[:1]); err != nil {
		t.Fatal(err)
	}
	_, err = c.exec("INSERT INTO tasks (id, status, mode, priority, created, updated, not_before, deadline, persistent, class, queue, spec, desired, executor) "+
		"VALUES ('old', 2, 0, 0, 1, 1, 0, 0, 1, 'c', '0||c', ?, 'Cancelled', 'n1')", spec)
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, path)
	if got, err := s.Desired(t.Context(), 9); err != nil || len(got) != 1 || got[0].Name != "n" {
		t.Fatalf("desired %+v, error %v", got, err)
	}
	r := task.Report{ID: "old", Kind: task.ReportCancelled, FinishedAt: 5}
	if n, err := s.Apply(t.Context(), r.Changes(5)); err != nil || n != 1 {
		t.Fatalf("%d applied, error %v", n, err)
	}
	if got := s.sql(t, "SELECT spec FROM tasks"); len(got) != 1 || got[0] != spec {
		t.Errorf("spec is %q, want %q", got, spec)
	}
	if got := s.sql(t, "SELECT name FROM sqlite_schema WHERE sql LIKE '%(desired)%'"); len(got) != 1 || got[0] != "tasks_desired" {
		t.Errorf("indexes by the desired state: %q", got)
	}
}

func TestSyncOfTheFile(t *testing.T) {
	t.Parallel()
	for sync, want := range map[Sync]string{"": "2", SyncFull: "2", SyncNormal: "1"} {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "skalds.db"), Options{Sync: sync})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.sql(t, "PRAGMA synchronous")[0]; got != want {
			t.Errorf("%q: synchronous is %s; want %s", sync, got, want)
		}
		if got := s.sql(t, "PRAGMA journal_mode")[0]; got != "wal" {
			t.Errorf("journal mode %s", got)
		}
		closeTest(t, s)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	closeTest(t, s)
	closeTest(t, s)
	for name, call := range map[string]func(context.Context) error{
		"read":  s.Ping,
		"write": func(ctx context.Context) error { _, err := s.Purge(ctx, "x"); return err },
	} {
		if err := call(t.Context()); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
