package redis

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/test/services"
)

// A heartbeat counts only if all replicas that are waited for have it, and a snapshot only if they all follow. It is
// one round trip all the same.
func TestReplicasAreWaitedFor(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	r := open(t, Config{Addrs: []string{f.Addr()}, WaitReplicas: 2, Timeout: time.Minute})
	for have := range int64(4) {
		enough := have >= 2
		f.replicas.Store(have)
		err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", have+1))
		if enough != (err == nil) || !enough && !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("heartbeat with %d of 2 replicas: %v", have, err)
		}
		if !enough && !strings.Contains(err.Error(), "REDIS_WAIT_REPLICAS") {
			t.Errorf("the error does not say why: %v", err)
		}
		if _, err := r.Snapshot(t.Context()); enough != (err == nil) || !enough && !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("snapshot with %d of 2 replicas: %v", have, err)
		}
	}
	f.replicas.Store(2)
	heartbeat(t, r, "n1", "i", 10)
	rec := record(r)
	heartbeat(t, r, "n1", "i", 11)
	trips := rec.take()
	last := trips[0][len(trips[0])-1].Args()
	if limit, ok := last[len(last)-1].(int64); len(trips) != 1 || last[0] != "wait" || last[1] != 2 || !ok || limit < 1 || limit > 30_000 {
		t.Errorf("%d round trips, the last command is %v", len(trips), last)
	}
	if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "other", 1)); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("a taken id: %v", err)
	}
	if ttl := f.TTL(probeKey); ttl <= 0 || ttl > registry.KeyTTL {
		t.Errorf("the probe lives for %s", ttl)
	}
}

// The same on a real redis-server with one replica: it counts while the replica follows, and not when it is gone or was
// promoted.
func TestIntegrationReplica(t *testing.T) {
	t.Parallel()
	master, replica := services.StartRedis(t), services.StartRedis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	command(t, master.Addr(), "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	command(t, replica.Addr(), "REPLICAOF", host, port)
	r := open(t, Config{Addrs: []string{master.Addr()}, WaitReplicas: 1, Timeout: DefaultTimeout})
	counter := int64(0)
	works := func() error {
		counter++
		if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", counter)); err != nil {
			return err
		}
		_, err := r.Snapshot(t.Context())
		return err
	}
	fails := func(why string) {
		t.Helper()
		counter++
		began := time.Now()
		if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", counter)); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("heartbeat, %s: %v", why, err)
		}
		if _, err := r.Snapshot(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("snapshot, %s: %v", why, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	eventually(t, works)
	copied := open(t, Config{Addrs: []string{replica.Addr()}})
	if n, ok, err := copied.Node(t.Context(), "n1"); err != nil || !ok || n.Counter != counter {
		t.Errorf("the replica has heartbeat %d, %v, %v; %d was confirmed", n.Counter, ok, err, counter)
	}
	command(t, replica.Addr(), "REPLICAOF", "NO", "ONE") // promoted: the old master still answers
	fails("the replica was promoted")
	command(t, replica.Addr(), "REPLICAOF", host, port)
	eventually(t, works)
	replica.Kill(t)
	fails("the replica is gone")
}

func eventually(t *testing.T, call func() error) {
	t.Helper()
	var err error
	for range 200 {
		if err = call(); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("it never worked: %v", err)
}
