//go:build linux

package redis

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/test/services"
)

// startSentinel starts one sentinel of a master named "skalds"; it ends with the test, or with this process.
func startSentinel(t *testing.T, master string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(addr)
	host, masterPort, _ := net.SplitHostPort(master)
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor skalds %s %s 1\nsentinel failover-timeout skalds 1000\n", port, dir, host, masterPort)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", config, "--sentinel")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr
}

// until repeats a call to a server, which is what it waits for, until it says yes.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for range 600 {
		if yes() {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// A failover that an operator asks for: heartbeats go on at the new master, and snapshots say that it is another run.
func TestIntegrationSentinelFailover(t *testing.T) {
	first, second := services.StartRedis(t), services.StartRedis(t)
	host, port, _ := net.SplitHostPort(first.Addr())
	command(t, second.Addr(), "REPLICAOF", host, port)
	addr := startSentinel(t, first.Addr())
	sentinel := goredis.NewSentinelClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { _ = sentinel.Close() })
	until(t, "the sentinel knows the replica", func() bool {
		replicas, err := sentinel.Replicas(t.Context(), "skalds").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})

	r := open(t, Config{Addrs: []string{addr}, SentinelMaster: "skalds"})
	heartbeat(t, r, "n1", "i", 1)
	before, err := r.Snapshot(t.Context())
	if err != nil || len(before.Nodes) != 1 {
		t.Fatalf("snapshot %+v, error %v", before, err)
	}

	until(t, "the sentinel takes the order", func() bool { return sentinel.Failover(t.Context(), "skalds").Err() == nil })
	counter := int64(1)
	until(t, "heartbeat and snapshot at the new master", func() bool {
		counter++
		if err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", counter)); err != nil {
			if !errors.Is(err, registry.ErrUnavailable) {
				t.Fatal(err)
			}
			return false
		}
		after, err := r.Snapshot(t.Context())
		if err != nil && !errors.Is(err, registry.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil && after.RunID != before.RunID && len(after.Nodes) == 1 && after.Nodes[0].Counter == counter
	})
}
