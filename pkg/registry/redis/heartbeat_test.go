package redis

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

func TestHeartbeatIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	rec := record(r)
	n := registrytest.Example("n1", "i", 0)
	send := func(what string, wantTrips int, wantList bool) {
		t.Helper()
		n.Counter++
		if err := r.Heartbeat(t.Context(), n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		trips := rec.take()
		if len(trips) != wantTrips {
			t.Errorf("%s: %d round trips, want %d", what, len(trips), wantTrips)
		}
		if list := slices.Contains(trips[len(trips)-1][0].Args(), any("t1")); list != wantList {
			t.Errorf("%s: the task list was sent: %v, want %v", what, list, wantList)
		}
	}
	send("first, the server does not know the script", 2, true)
	send("unchanged", 1, false)
	send("unchanged", 1, false)
	n.Tasks[0].State = "finished"
	send("changed", 1, true)
	send("unchanged", 1, false)
	f.FlushAll()
	send("emptied: the script asks for the list", 2, true)
	send("unchanged", 1, false)
	f.Del(tasksKey("n1"))
	send("list evicted: the script asks for it", 2, true)
	f.restart()
	send("restarted: the script is unknown", 2, false)
	send("unchanged", 1, false)
	r.sent.forget("n1")
	send("not known to be confirmed", 1, true)
}

// What is there is not what this process confirmed last: a server that was set back, or a late heartbeat.
func TestHeartbeatNoticesAnotherList(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	other := open(t, Config{Addrs: []string{f.Addr()}})
	n := registrytest.Example("n1", "i", 0)
	lists := [][]registry.HeldTask{n.Tasks, n.Tasks[:1]}
	for i, client := range []*Registry{r, other, r} {
		n.Counter++
		n.Tasks = lists[i%2]
		if err := client.Heartbeat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got, _, err := r.Node(t.Context(), "n1"); err != nil || !slices.Equal(got.Tasks, n.Tasks) {
			t.Errorf("after number %d: %v, error %v, want %v", n.Counter, got.Tasks, err, n.Tasks)
		}
	}
}

// The hash and the index are both part of a confirmed heartbeat: a node that no snapshot can see must not trust itself.
func TestHeartbeatWithoutIndexIsNotConfirmed(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	if err := f.Set(indexKey, "another program's"); err != nil {
		t.Fatal(err)
	}
	if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", 1)); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("heartbeat without index: %v", err)
	}
	if _, err := r.Snapshot(t.Context()); err == nil {
		t.Error("a snapshot without index succeeded")
	}
}

// A hash without incarnation is nobody's to overwrite.
func TestHeartbeatLeavesAnothersHash(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	f.HSet(nodeKey("n1"), "hello", "world")
	if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", 1)); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("heartbeat: %v, want ErrTaken", err)
	}
	if keys, err := f.HKeys(nodeKey("n1")); err != nil || len(keys) != 1 {
		t.Errorf("the hash holds %v, error %v", keys, err)
	}
}
