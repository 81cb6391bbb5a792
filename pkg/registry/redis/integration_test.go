package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/test/services"
)

func command(t *testing.T, addr string, args ...any) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	if err := c.Do(context.Background(), args...).Err(); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// S13: the suite on a real redis-server, Debian's 7.0.
func TestIntegrationS13_RegistryOnRedis(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Server {
		s := services.StartRedis(t)
		return registrytest.Server{
			Registry: open(t, Config{Addrs: []string{s.Addr()}}),
			Restart: func() {
				s.Stop(t)
				s.Start(t)
			},
			Empty: func() { command(t, s.Addr(), "FLUSHALL") },
			SetDown: func(down bool) {
				if down {
					s.Kill(t)
				} else {
					s.Start(t)
				}
			},
		}
	})
}

// The suite on a real cluster of three masters, and what only several masters can show. Not parallel: it sets the
// environment.
func TestIntegrationCluster(t *testing.T) {
	masters := make([]*services.Service, 3)
	addrs := make([]string, 3)
	for i := range masters {
		t.Setenv("SKALDS_REDIS_ARGS", "--cluster-enabled yes --cluster-node-timeout 2000")
		masters[i] = services.StartRedis(t)
		addrs[i] = masters[i].Addr()
	}
	out, err := exec.CommandContext(t.Context(), "redis-cli", append([]string{"--cluster", "create", "--cluster-yes"}, addrs...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	cfg := Config{Addrs: addrs[:1], Cluster: true}
	r := open(t, cfg)
	// everyShardAnswers waits until nodes in all slots' shards can take a heartbeat and be read.
	everyShardAnswers := func() {
		t.Helper()
		try := func() error {
			for i := range 60 {
				if err := r.Heartbeat(t.Context(), registrytest.Example(fmt.Sprintf("n%d", i), "i", 1)); err != nil {
					return err
				}
			}
			_, err := r.Snapshot(t.Context())
			return err
		}
		for err := try(); err != nil; err = try() {
			if !errors.Is(err, registry.ErrUnavailable) || t.Context().Err() != nil {
				t.Fatal(err)
			}
			<-time.After(50 * time.Millisecond)
		}
	}
	everyShardAnswers()

	var one sync.Mutex // the tests share the cluster
	registrytest.Run(t, func(t *testing.T) registrytest.Server {
		one.Lock()
		t.Cleanup(one.Unlock)
		empty := func() {
			for _, addr := range addrs {
				command(t, addr, "FLUSHALL")
			}
		}
		empty()
		return registrytest.Server{Registry: open(t, cfg), Empty: empty}
	})

	t.Run("every shard's restart shows", func(t *testing.T) {
		one.Lock()
		t.Cleanup(one.Unlock)
		everyShardAnswers()
		for i, master := range masters {
			before, err := r.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(before.RunID, ",") != 2 {
				t.Errorf("the run id does not name three masters: %s", before.RunID)
			}
			master.Stop(t)
			if _, err := r.Snapshot(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("snapshot without master %d: %v", i, err)
			}
			master.Start(t)
			everyShardAnswers()
			after, err := r.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if after.RunID == before.RunID {
				t.Errorf("the restart of master %d does not show", i)
			}
		}
	})
}

// C82 and S13: 10,000 nodes; the keys all have a time to live.
func TestIntegrationC82_TenThousandNodes(t *testing.T) {
	s := services.StartRedis(t)
	r := open(t, Config{Addrs: []string{s.Addr()}})
	const nodes = 10_000
	fill(t, r, nodes)
	snapshot, err := r.Snapshot(t.Context())
	if err != nil || len(snapshot.Nodes) != nodes {
		t.Fatalf("%d nodes, error %v", len(snapshot.Nodes), err)
	}
	want := registrytest.WithoutTasks(registrytest.Example("n04321", "i", 1))
	at, found := slices.BinarySearchFunc(snapshot.Nodes, want.ID, func(n registry.Node, id string) int { return strings.Compare(n.ID, id) })
	if !found || fmt.Sprint(snapshot.Nodes[at]) != fmt.Sprint(want) {
		t.Errorf("node %s is not as it was sent", want.ID)
	}

	c := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	size, err := c.DBSize(t.Context()).Result()
	if err != nil || size != 2*nodes+1 {
		t.Errorf("%d keys, error %v", size, err)
	}
	keys := c.Scan(t.Context(), 0, "*", 1000).Iterator()
	var names []string
	for keys.Next(t.Context()) {
		names = append(names, keys.Val())
	}
	if err := keys.Err(); err != nil || int64(len(names)) < size {
		t.Fatalf("scan gave %d keys, error %v", len(names), err)
	}
	ttls := make([]*goredis.DurationCmd, len(names))
	_, err = c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
		for i, name := range names {
			ttls[i] = p.PTTL(t.Context(), name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, ttl := range ttls {
		if ttl.Val() <= 0 || ttl.Val() > registry.KeyTTL {
			t.Fatalf("key %s lives for %v", names[i], ttl.Val())
		}
	}
}

func TestIntegrationPassword(t *testing.T) {
	s := services.StartRedis(t)
	command(t, s.Addr(), "ACL", "SETUSER", "node", "on", ">secret", "~skalds:*", "+@all", "-info")
	right := open(t, Config{Addrs: []string{s.Addr()}, Username: "node", Password: "secret"})
	heartbeat(t, right, "n1", "i", 1)
	if _, err := right.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "NOPERM") || !strings.Contains(err.Error(), "REDIS_USERNAME") {
		t.Errorf("snapshot without the right to INFO: %v", err)
	}
	wrong := open(t, Config{Addrs: []string{s.Addr()}, Username: "node", Password: "public"})
	if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "REDIS_PASSWORD") || errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("ping with a wrong password: %v", err)
	}
}

// fill registers nodes n00000 and on, several at a time.
func fill(t testing.TB, r *Registry, nodes int) {
	t.Helper()
	var wg sync.WaitGroup
	const senders = 8
	for sender := range senders {
		wg.Go(func() {
			for i := sender; i < nodes; i += senders {
				if err := r.Heartbeat(context.Background(), registrytest.Example(fmt.Sprintf("n%05d", i), "i", 1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func openBenchmark(b *testing.B) *Registry {
	b.Helper()
	r, err := Open(Config{Addrs: []string{services.StartRedis(b).Addr()}, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return r
}

func BenchmarkIntegrationHeartbeat(b *testing.B) {
	for name, changes := range map[string]bool{"unchanged": false, "changed": true} {
		b.Run(name, func(b *testing.B) {
			r := openBenchmark(b)
			n := registrytest.Example("n1", "i", 0)
			n.Tasks = nil
			for i := range 32 {
				n.Tasks = append(n.Tasks, registry.HeldTask{ID: fmt.Sprintf("task-%d", i), Attempt: 1, ClaimID: fmt.Sprintf("claim-%d", i)})
			}
			b.ReportAllocs()
			for b.Loop() {
				n.Counter++
				if changes {
					n.Tasks[0].Attempt = n.Counter
				}
				if err := r.Heartbeat(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkIntegrationSnapshot10000(b *testing.B) {
	r := openBenchmark(b)
	fill(b, r, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		fill(b, r, 10_000) // else they expire
		b.StartTimer()
		if s, err := r.Snapshot(b.Context()); err != nil || len(s.Nodes) != 10_000 {
			b.Fatalf("%d nodes, error %v", len(s.Nodes), err)
		}
	}
}
