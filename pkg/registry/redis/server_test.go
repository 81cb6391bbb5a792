package redis

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer is a Redis server in the process whose time, run id and availability a test turns. (pkg/embedded ages keys
// by itself.)
type fakeServer struct {
	t *testing.T
	*miniredis.Miniredis
	run  atomic.Int64
	mu   sync.Mutex
	fail string // key whose HMGET answers LOADING

	replicas atomic.Int64 // that have what was written
}

func startFake(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, Miniredis: miniredis.RunT(t)}
	f.run.Store(1)
	f.hook()
	return f
}

// hook answers INFO server, which the library does not know, and fails what should fail.
func (f *fakeServer) hook() {
	f.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		f.mu.Lock()
		fail := f.fail
		f.mu.Unlock()
		if cmd == "HMGET" && args[0] == fail {
			c.WriteError("LOADING Redis is loading the dataset in memory")
			return true
		}
		if cmd == "WAIT" {
			c.WriteInt(int(f.replicas.Load()))
			return true
		}
		if cmd != "INFO" || len(args) != 1 || args[0] != "server" {
			return false
		}
		c.WriteBulk(fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nrun_id:run%d\r\ntcp_port:1\r\n", f.run.Load()))
		return true
	})
}

func (f *fakeServer) setDown(down bool) {
	if down {
		f.Close()
		return
	}
	if err := f.Restart(); err != nil {
		f.t.Errorf("restart: %v", err)
	}
	f.hook()
}

// restart forgets the scripts and keeps the keys.
func (f *fakeServer) restart() {
	c := goredis.NewClient(&goredis.Options{Addr: f.Addr()})
	if err := c.ScriptFlush(context.Background()).Err(); err != nil {
		f.t.Errorf("script flush: %v", err)
	}
	_ = c.Close()
	f.setDown(true)
	f.run.Add(1)
	f.setDown(false)
}

func open(t *testing.T, cfg Config) *Registry {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 { // tests share the machine, and wait for no time-out unless they are about it
		cfg.Timeout = time.Minute
	}
	cfg.DialTimeout = cfg.Timeout
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func openFake(t *testing.T) (*fakeServer, *Registry) {
	t.Helper()
	f := startFake(t)
	return f, open(t, Config{Addrs: []string{f.Addr()}})
}

// heartbeat sends the example heartbeat of a node.
func heartbeat(t *testing.T, r *Registry, id, incarnation string, counter int64) {
	t.Helper()
	if err := r.Heartbeat(t.Context(), registrytest.Example(id, incarnation, counter)); err != nil {
		t.Fatal(err)
	}
}

// recorder is a hook of the client: it counts round trips and may act before each.
type recorder struct {
	mu     sync.Mutex
	trips  [][]goredis.Cmder
	before func(trip int)
}

func record(r *Registry) *recorder {
	rec := &recorder{}
	r.client.AddHook(rec)
	return rec
}

func (r *recorder) DialHook(next goredis.DialHook) goredis.DialHook          { return next }
func (r *recorder) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }
func (r *recorder) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		r.mu.Lock()
		r.trips = append(r.trips, cmds)
		trip, before := len(r.trips), r.before
		r.mu.Unlock()
		if before != nil {
			before(trip)
		}
		return next(ctx, cmds)
	}
}

// take returns the round trips since the last take.
func (r *recorder) take() [][]goredis.Cmder {
	r.mu.Lock()
	defer r.mu.Unlock()
	trips := r.trips
	r.trips = nil
	return trips
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]bool{"single": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registrytest.Run(t, func(t *testing.T) registrytest.Server {
				f := startFake(t)
				return registrytest.Server{
					Registry: open(t, Config{Addrs: []string{f.Addr()}, Cluster: cluster}),
					Advance:  f.FastForward,
					Restart:  f.restart,
					Empty:    f.FlushAll,
					SetDown:  f.setDown,
				}
			})
		})
	}
}
