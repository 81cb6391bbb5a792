package redis

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/embedded"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

var update = flag.Bool("update", false, "write the golden files")

// The server of `skalds dev` serves the registry as a real one does.
func TestRegistryOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(t *testing.T) registrytest.Server {
		e, err := embedded.StartRedis(embedded.RedisConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return registrytest.Server{Registry: open(t, Config{Addrs: []string{e.Addr()}})}
	})
}

// The keys are a format that operators and other versions read.
func TestKeysGolden(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	f.SetTime(time.UnixMilli(1_767_323_045_123))
	heartbeat(t, r, "n1", "i1", 7)
	got := f.Dump()
	path := filepath.Join("testdata", "keys.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("keys:\n%s\nwant (-update writes them):\n%s", got, want)
	}
}

// C81: of a task Redis holds its id, attempt, claim and state, and nothing that grows with its payload. The golden keys
// show it; this holds it for every entry.
func TestC81_RedisHoldsNoPayload(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	heartbeat(t, r, "n1", "i1", 1)
	tasks, err := f.HKeys(tasksKey("n1"))
	if err != nil || len(tasks) != 2 {
		t.Fatalf("tasks %v, error %v", tasks, err)
	}
	for _, id := range tasks {
		var keys []string
		for part := range strings.SplitSeq(strings.Trim(f.HGet(tasksKey("n1"), id), "{}"), ",") {
			key, _, _ := strings.Cut(part, ":")
			keys = append(keys, key)
		}
		if want := []string{`"attempt"`, `"claimId"`, `"state"`}; !slices.Equal(keys, want) {
			t.Errorf("task %s holds %v, want %v", id, keys, want)
		}
	}
}

// C82: nodes come and go 1,000 times; every key has a time to live, and nothing is left of those that are gone.
func TestC82_EveryKeyExpires(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	for i := range 1000 {
		id, incarnation := fmt.Sprintf("n%d", i%20), fmt.Sprintf("i%d", i)
		heartbeat(t, r, id, incarnation, 1)
		if i%20 < 10 || i < 980 {
			if err := r.Leave(t.Context(), id, incarnation); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := f.Keys()
	if want := 10*2 + 1; len(keys) != want {
		t.Errorf("%d keys, want %d: %v", len(keys), want, keys)
	}
	for _, key := range keys {
		if ttl := f.TTL(key); ttl <= 0 || ttl > registry.KeyTTL {
			t.Errorf("key %s lives for %v", key, ttl)
		}
	}
	f.FastForward(registry.KeyTTL)
	if keys := f.Keys(); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

// C82: the index is renewed by those that live and forgets the others all the same.
func TestC82_IndexForgetsDeadNodes(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	start := time.UnixMilli(1_767_323_045_123)
	f.SetTime(start)
	for i := range 50 {
		heartbeat(t, r, fmt.Sprintf("dead%d", i), "i", 1)
	}
	f.SetTime(start.Add(2 * registry.KeyTTL))
	heartbeat(t, r, "alive", "i", 1)
	if members, err := f.ZMembers(indexKey); err != nil || len(members) != 51 {
		t.Errorf("within two lives: %d members, error %v", len(members), err)
	}
	f.SetTime(start.Add(2*registry.KeyTTL + time.Millisecond))
	heartbeat(t, r, "alive", "i", 2)
	if members, err := f.ZMembers(indexKey); err != nil || !slices.Equal(members, []string{"alive"}) {
		t.Errorf("later: members %v, error %v", members, err)
	}
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer      string
		unavailable bool
		text        string
	}{
		{"LOADING Redis is loading the dataset in memory", true, "LOADING"},
		{"READONLY You can't write against a read only replica.", true, "READONLY"},
		{"CLUSTERDOWN The cluster is down", true, "CLUSTERDOWN"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", true, "MASTERDOWN"},
		{"NOREPLICAS Not enough good replicas to write.", true, "NOREPLICAS"},
		{"OOM command not allowed when used memory > 'maxmemory'.", true, "OOM"},
		{"BUSY Redis is busy running a script.", true, "BUSY"},
		{"MISCONF Errors writing to the AOF file", true, "MISCONF"},
		{"ERR max number of clients reached", true, "max number"},
		{"NOAUTH Authentication required.", false, "REDIS_PASSWORD"},
		{"WRONGPASS invalid username-password pair or user is disabled.", false, "REDIS_USERNAME"},
		{"NOPERM User x has no permissions to run the 'evalsha' command", false, "REDIS_USERNAME"},
		{"ERR unknown command 'EVALSHA'", false, "unknown command"},
	}
	for _, tt := range tests {
		t.Run(strings.Fields(tt.answer)[0], func(t *testing.T) {
			t.Parallel()
			f, r := openFake(t)
			heartbeat(t, r, "n1", "i", 1) // connected
			f.SetError(tt.answer)
			_, snapshotErr := r.Snapshot(t.Context())
			_, _, nodeErr := r.Node(t.Context(), "n1")
			for call, err := range map[string]error{
				"heartbeat": r.Heartbeat(t.Context(), registrytest.Example("n1", "i", 2)), "ping": r.Ping(t.Context()),
				"leave": r.Leave(t.Context(), "n1", "i"), "snapshot": snapshotErr, "node": nodeErr,
			} {
				if err == nil || errors.Is(err, registry.ErrUnavailable) != tt.unavailable || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("%s: %v", call, err)
				} else if !strings.Contains(err.Error(), f.Addr()) {
					t.Errorf("%s: the error does not say where: %v", call, err)
				}
			}
		})
	}
}

func TestSentListsAreBounded(t *testing.T) {
	t.Parallel()
	var s sentLists
	for i := range maxSent + 5 {
		s.put(&registry.Node{ID: fmt.Sprint(i), Incarnation: "i"}, "d")
		if len(s.list) > maxSent {
			t.Fatalf("%d lists are remembered, at most %d should be", len(s.list), maxSent)
		}
	}
	last := &registry.Node{ID: fmt.Sprint(maxSent + 4), Incarnation: "i"}
	if !s.is(last, "d") || s.is(last, "other") || s.is(&registry.Node{ID: last.ID, Incarnation: "j"}, "d") {
		t.Error("the newest is not remembered by incarnation and digest")
	}
}
