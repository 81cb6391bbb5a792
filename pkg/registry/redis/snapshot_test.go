package redis

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/registry"
)

func TestSnapshotReadsInChunks(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	const nodes = 2*chunk + 1
	for i := range nodes {
		id := fmt.Sprintf("n%05d", i)
		f.HSet(nodeKey(id), "incarnation", "i", "counter", "1", "capacity", "16")
		if _, err := f.ZAdd(indexKey, float64(-i), id); err != nil {
			t.Fatal(err)
		}
	}
	rec := record(r)
	s, err := r.Snapshot(t.Context())
	if err != nil || len(s.Nodes) != nodes {
		t.Fatalf("%d nodes, error %v", len(s.Nodes), err)
	}
	if !slices.IsSortedFunc(s.Nodes, func(a, b registry.Node) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the nodes are not ordered by id")
	}
	if trips := len(rec.take()); trips != 1+3 {
		t.Errorf("%d round trips, want the index and 3 chunks", trips)
	}
}

func TestSnapshotIndexIsBounded(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	for i := range MaxNodes + 1 {
		if _, err := f.ZAdd(indexKey, 1, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 100000") {
		t.Errorf("snapshot: %v", err)
	}
}

func TestSnapshotAcrossARestartIsAnError(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]bool{"single": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			r := open(t, Config{Addrs: []string{f.Addr()}, Cluster: cluster})
			heartbeat(t, r, "n1", "i", 1)
			rec := record(r)
			rec.before = func(trip int) {
				if trip == 2 { // after the index
					f.restart()
				}
			}
			if s, err := r.Snapshot(t.Context()); !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "restarted") {
				t.Errorf("snapshot %+v, error %v", s, err)
			}
			if s, err := r.Snapshot(t.Context()); err != nil || s.RunID != "run2" || len(s.Nodes) != 1 {
				t.Errorf("the next snapshot: %+v, error %v", s, err)
			}
		})
	}
}

// A node whose read fails makes the snapshot an error, whatever else went wrong before it: a node that is left out
// seems lost.
func TestSnapshotWithAFailedReadIsAnError(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	heartbeat(t, r, "a", "i", 1)
	heartbeat(t, r, "b", "i", 1)
	f.Del(nodeKey("a"))
	if err := f.Set(nodeKey("a"), "another program's"); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.fail = nodeKey("b")
	f.mu.Unlock()
	if s, err := r.Snapshot(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("snapshot %+v, error %v", s, err)
	}
}

func TestServerWithoutRunIDIsAnError(t *testing.T) {
	t.Parallel()
	for _, info := range []string{"", "# Server\r\nredis_version:7.0.15\r\n", "run_id:\r\n", "xrun_id:1\r\n"} {
		if id, err := parseRunID(info); err == nil {
			t.Errorf("%q gives the run id %q", info, id)
		}
	}
}

func TestForeignKeysAreLeftOut(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := startFake(t)
	r := open(t, Config{Addrs: []string{f.Addr()}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	heartbeat(t, r, "good", "i", 1)
	foreign := map[string]func(key string){
		"string":         func(key string) { _ = f.Set(key, "x") },
		"no-incarnation": func(key string) { f.HSet(key, "counter", "1") },
		"no-counter":     func(key string) { f.HSet(key, "incarnation", "i") },
		"bad-counter":    func(key string) { f.HSet(key, "incarnation", "i", "counter", "many") },
		"bad-labels":     func(key string) { f.HSet(key, "incarnation", "i", "counter", "1", "labels", "[1]") },
		"bad-cpu":        func(key string) { f.HSet(key, "incarnation", "i", "counter", "1", "cpu", "all") },
		"huge": func(key string) {
			f.HSet(key, "incarnation", "i", "counter", "1", "address", strings.Repeat("x", maxReadBytes))
		},
	}
	for id, write := range foreign {
		write(nodeKey(id))
		if _, err := f.ZAdd(indexKey, 1, id); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		s, err := r.Snapshot(t.Context())
		if err != nil || len(s.Nodes) != 1 || s.Nodes[0].ID != "good" {
			t.Fatalf("snapshot %+v, error %v", s.Nodes, err)
		}
	}
	if got, want := r.Foreign(), int64(3*len(foreign)); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
	for id := range foreign {
		if got := strings.Count(log.String(), nodeKey(id)); got != 1 {
			t.Errorf("%s is logged %d times", id, got)
		}
		if _, found, err := r.Node(t.Context(), id); err == nil {
			t.Errorf("read of %s: found %v and no error", id, found)
		}
		f.Del(nodeKey(id))
	}
	if _, err := r.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.foreign.logged) != 0 {
		t.Errorf("still remembered: %v", r.foreign.logged)
	}
}

func TestLostTaskListIsIncomplete(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	heartbeat(t, r, "n1", "i", 1)
	f.HDel(tasksKey("n1"), "t1")
	if n, _, err := r.Node(t.Context(), "n1"); !errors.Is(err, registry.ErrIncomplete) {
		t.Errorf("a list with a hole: %+v, %v", n, err)
	}
	f.HSet(tasksKey("n1"), "t1", "{")
	if n, _, err := r.Node(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "t1") {
		t.Errorf("a list with rubbish: %+v, %v", n, err)
	}
}
