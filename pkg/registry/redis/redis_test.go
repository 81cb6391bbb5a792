package redis

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

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
	beat(t, r, "n1", "i1", 7)
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

// C81: of a task Redis holds its id, attempt, claim and state, and nothing that grows with its payload. The golden keys show it; this
// holds it for every entry.
func TestC81_RedisHoldsNoPayload(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	beat(t, r, "n1", "i1", 1)
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
		beat(t, r, id, incarnation, 1)
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
		beat(t, r, fmt.Sprintf("dead%d", i), "i", 1)
	}
	f.SetTime(start.Add(2 * registry.KeyTTL))
	beat(t, r, "alive", "i", 1)
	if members, err := f.ZMembers(indexKey); err != nil || len(members) != 51 {
		t.Errorf("within two lives: %d members, error %v", len(members), err)
	}
	f.SetTime(start.Add(2*registry.KeyTTL + time.Millisecond))
	beat(t, r, "alive", "i", 2)
	if members, err := f.ZMembers(indexKey); err != nil || !slices.Equal(members, []string{"alive"}) {
		t.Errorf("later: members %v, error %v", members, err)
	}
}

func TestBeatIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	rec := record(r)
	n := registrytest.Example("n1", "i", 0)
	send := func(what string, wantTrips int, wantList bool) {
		t.Helper()
		n.Counter++
		if err := r.Beat(t.Context(), n); err != nil {
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
func TestBeatNoticesAnotherList(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	other := open(t, Config{Addrs: []string{f.Addr()}})
	n := registrytest.Example("n1", "i", 0)
	lists := [][]registry.HeldTask{n.Tasks, n.Tasks[:1]}
	for i, client := range []*Registry{r, other, r} {
		n.Counter++
		n.Tasks = lists[i%2]
		if err := client.Beat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got, _, err := r.Node(t.Context(), "n1"); err != nil || !slices.Equal(got.Tasks, n.Tasks) {
			t.Errorf("after number %d: %v, error %v, want %v", n.Counter, got.Tasks, err, n.Tasks)
		}
	}
}

// The hash and the index are both part of a confirmed heartbeat: a node that no snapshot can see must not trust itself.
func TestBeatWithoutIndexIsNotConfirmed(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	if err := f.Set(indexKey, "another program's"); err != nil {
		t.Fatal(err)
	}
	if err := r.Beat(t.Context(), registrytest.Example("n1", "i", 1)); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("beat without index: %v", err)
	}
	if _, err := r.Snapshot(t.Context()); err == nil {
		t.Error("a snapshot without index succeeded")
	}
}

// A hash without incarnation is nobody's to overwrite.
func TestBeatLeavesAnothersHash(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	f.HSet(nodeKey("n1"), "hello", "world")
	if err := r.Beat(t.Context(), registrytest.Example("n1", "i", 1)); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("beat: %v, want ErrTaken", err)
	}
	if keys, err := f.HKeys(nodeKey("n1")); err != nil || len(keys) != 1 {
		t.Errorf("the hash holds %v, error %v", keys, err)
	}
}

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
			beat(t, r, "n1", "i", 1)
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

// A node whose read fails makes the snapshot an error, whatever else went wrong before it: a node that is left out seems lost.
func TestSnapshotWithAFailedReadIsAnError(t *testing.T) {
	t.Parallel()
	f, r := openFake(t)
	beat(t, r, "a", "i", 1)
	beat(t, r, "b", "i", 1)
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
	beat(t, r, "good", "i", 1)
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
	beat(t, r, "n1", "i", 1)
	f.HDel(tasksKey("n1"), "t1")
	if n, _, err := r.Node(t.Context(), "n1"); !errors.Is(err, registry.ErrIncomplete) {
		t.Errorf("a list with a hole: %+v, %v", n, err)
	}
	f.HSet(tasksKey("n1"), "t1", "{")
	if n, _, err := r.Node(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "t1") {
		t.Errorf("a list with rubbish: %+v, %v", n, err)
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
			beat(t, r, "n1", "i", 1) // connected
			f.SetError(tt.answer)
			_, snapshotErr := r.Snapshot(t.Context())
			_, _, nodeErr := r.Node(t.Context(), "n1")
			for call, err := range map[string]error{
				"beat": r.Beat(t.Context(), registrytest.Example("n1", "i", 2)), "ping": r.Ping(t.Context()),
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

func TestPassword(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		username, password string
		ok                 bool
	}{
		{"right", "ann", "secret", true},
		{"none", "", "", false},
		{"wrong", "ann", "wr0ng", false},
		{"no username", "", "secret", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			f.RequireUserAuth("ann", "secret")
			r := open(t, Config{Addrs: []string{f.Addr()}, Username: tt.username, Password: tt.password})
			err := r.Beat(t.Context(), registrytest.Example("n1", "i", 1))
			switch {
			case tt.ok && err != nil:
				t.Error(err)
			case !tt.ok && (err == nil || !strings.Contains(err.Error(), "REDIS_PASSWORD") || errors.Is(err, registry.ErrUnavailable)):
				t.Errorf("error = %v", err)
			case !tt.ok && tt.password != "" && strings.Contains(err.Error(), tt.password):
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // only its certificate is of use
	t.Cleanup(web.Close)
	m := miniredis.NewMiniRedis()
	if err := m.StartTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	trusting := open(t, Config{Addrs: []string{m.Addr()}, TLS: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}})
	beat(t, trusting, "n1", "i", 1)
	doubting := open(t, Config{Addrs: []string{m.Addr()}, TLS: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}})
	if err := doubting.Ping(t.Context()); !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("ping of a server with an unknown certificate: %v", err)
	}
}

// A server that takes the connection and never answers costs a call its timeout and no more.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := open(t, Config{Addrs: []string{listener.Addr().String()}, Timeout: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Beat(ctx, registrytest.Example("n1", "i", 1)); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("beat: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("the call took as long as its caller's context")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"no address", Config{}, "no redis address"},
		{"two addresses", Config{Addrs: []string{"a:1", "b:1"}}, "a:1, b:1"},
		{"cluster and sentinel", Config{Addrs: []string{"a:1"}, Cluster: true, SentinelMaster: "m"}, "both"},
		{"cluster with replicas", Config{Addrs: []string{"a:1"}, Cluster: true, WaitReplicas: 1}, "WaitReplicas 1"},
		{"negative replicas", Config{Addrs: []string{"a:1"}, WaitReplicas: -1}, "at least 0"},
		{"cluster with a database", Config{Addrs: []string{"a:1"}, Cluster: true, DB: 3}, "database 0, not 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Open(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
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

func ExampleOpen() {
	r, err := Open(Config{Addrs: []string{"127.0.0.1:1"}, Timeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = r.Close() }()
	fmt.Println(errors.Is(r.Ping(context.Background()), registry.ErrUnavailable))
	// Output: true
}
