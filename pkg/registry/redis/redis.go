// Package redis keeps the registry in Redis 7.0 or newer: one server, a Redis Cluster, or behind Sentinel.
//
//	skalds:node:{ID}          hash: the heartbeat ("{" and "}" are part of the key: they put a node's keys into one slot)
//	skalds:node:{ID}:tasks    hash: task id -> {"attempt":…,"claimId":…,"state":…}
//	skalds:node:{ID}:evicted  text: an incarnation that the leader has evicted, and that may not register again
//	skalds:probe              text: written before a snapshot to see that the replicas get it; only with WaitReplicas
//	skalds:nodes              sorted set: ids whose keys may exist; only an index
//
// Invariants:
//
//   - A heartbeat is confirmed only if the server has written the node's hash and the index. One script checks that the
//     hash is absent or this incarnation's and holds no newer heartbeat, and writes it.
//   - The task list that is read with a heartbeat is the whole list of that incarnation, or an error. It is sent when
//     it changed. If the server has lost it, the script asks for it before it writes anything.
//   - A heartbeat takes one round trip. Two after the server was restarted or emptied.
//   - With WaitReplicas, a heartbeat is confirmed only if all these replicas have it, and a snapshot is read only from
//     a server that they all still follow. So if two servers take themselves for the master after a failover, nobody
//     trusts the old one.
//   - Every key has a time to live of registry.KeyTTL, renewed by heartbeats alone.
//   - A snapshot was answered by one run of the server, or it is an error.
//   - No call takes longer than the configured timeout per round trip, and none is sent twice by the library.
package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
)

const (
	indexKey = "skalds:nodes"
	probeKey = "skalds:probe"
)

func nodeKey(id string) string    { return "skalds:node:{" + id + "}" }
func tasksKey(id string) string   { return "skalds:node:{" + id + "}:tasks" }
func evictedKey(id string) string { return "skalds:node:{" + id + "}:evicted" }

//go:embed heartbeat.lua
var heartbeatSource string

//go:embed index.lua
var indexSource string

//go:embed leave.lua
var leaveSource string

//go:embed evict.lua
var evictSource string

var (
	heartbeatScript = newScript(heartbeatSource)
	indexScript     = newScript(indexSource)
	leaveScript     = newScript(leaveSource)
	evictScript     = newScript(evictSource)
)

// Registry is a registry in Redis. It is safe for concurrent use; the heartbeats of one node are sent one after the
// other.
type Registry struct {
	client  goredis.UniversalClient
	cluster *goredis.ClusterClient // the same client, if it is a cluster's
	where   string                 // for errors
	timeout time.Duration
	wait    int // replicas that must have what was written
	log     *slog.Logger
	close   func() error
	sent    sentLists
	foreign foreignKeys
}

var _ registry.Registry = (*Registry)(nil)

// Open checks the configuration and returns a registry, which the caller closes. It does not connect: if a server is
// down, the calls fail. From the first Open on, the log of the Redis library goes to slog at debug level, for the whole
// process. Otherwise the library would print every refused connection to standard error, which the errors of the calls
// report anyway.
func Open(cfg Config) (*Registry, error) {
	quietLibrary()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("redis registry: %w", err)
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = DefaultTimeout
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	r := &Registry{client: cfg.client(), where: strings.Join(cfg.Addrs, ","), timeout: cfg.Timeout, wait: cfg.WaitReplicas, log: cfg.Logger}
	r.cluster, _ = r.client.(*goredis.ClusterClient)
	r.close = sync.OnceValue(r.client.Close)
	return r, nil
}

var quietLibrary = sync.OnceFunc(func() { goredis.SetLogger(libraryLog{}) })

type libraryLog struct{}

func (libraryLog) Printf(ctx context.Context, format string, v ...any) {
	if slog.Default().Enabled(ctx, slog.LevelDebug) {
		slog.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
	}
}

// Ping implements [registry.Registry]. In a cluster every master has to answer.
func (r *Registry) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if r.cluster != nil {
		return r.failure("ping", r.cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return c.Ping(ctx).Err() }))
	}
	return r.failure("ping", r.client.Ping(ctx).Err())
}

// Close implements [registry.Registry]. Calls that come later fail.
func (r *Registry) Close() error {
	if err := r.close(); err != nil {
		return fmt.Errorf("close redis at %s: %w", r.where, err)
	}
	return nil
}

// script is a Lua script with its digest.
type script struct{ source, digest string }

func newScript(source string) script { return script{source, goredis.NewScript(source).Hash()} }

// call is one run of a script.
type call struct {
	script script
	keys   []string
	args   []any
}

// run makes the calls in one round trip. Calls to one server are made in this order. If a server does not know the
// scripts yet, a second round trip sends their text. The error is the first of the calls' errors, and means that no
// call counts.
func (r *Registry) run(ctx context.Context, calls ...call) ([]*goredis.Cmd, error) {
	cmds, _, err := r.runAndWait(ctx, 0, calls...)
	return cmds, err
}

// runAndWait is run, and waits until that many replicas have what was written. It returns how many have it.
func (r *Registry) runAndWait(ctx context.Context, replicas int, calls ...call) ([]*goredis.Cmd, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cmds := make([]*goredis.Cmd, len(calls))
	var have *goredis.IntCmd
	wait := func(p goredis.Pipeliner) {
		if replicas > 0 {
			have = r.waitFor(ctx, p, replicas)
		}
	}
	_, err := r.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range calls {
			cmds[i] = p.EvalSha(ctx, c.script.digest, c.keys, c.args...)
		}
		wait(p)
		return nil
	})
	for _, cmd := range cmds {
		if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			_, err = r.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for i, c := range calls {
					cmds[i] = p.Eval(ctx, c.script.source, c.keys, c.args...)
				}
				wait(p)
				return nil
			})
			break
		}
	}
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // failure wraps it, with what was being done
	}
	if have == nil {
		return cmds, 0, nil
	}
	return cmds, have.Val(), nil
}

// waitFor has the server wait until replicas have what this connection wrote, and answer how many have it. The server
// waits for half of the remaining time at most, so that its answer still arrives.
func (r *Registry) waitFor(ctx context.Context, p goredis.Pipeliner, replicas int) *goredis.IntCmd {
	limit := r.timeout / 2
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	cmd := goredis.NewIntCmd(ctx, "wait", replicas, max(limit.Milliseconds(), 1)) // 0 would be for ever
	_ = p.Process(ctx, cmd)                                                       // only queues it
	return cmd
}

// behind returns the error that too few replicas have what was written.
func (r *Registry) behind(have int64) error {
	return fmt.Errorf("%w: %d of %d replicas have it (REDIS_WAIT_REPLICAS)", registry.ErrUnavailable, have, r.wait)
}

// unavailable lists the answers of a server that cannot serve now but may again later.
var unavailable = []string{
	"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "OOM", "BUSY", "MOVED", "ASK",
	"max number of clients",
}

// denied lists the answers of a server that does not know the user, or does not allow the command.
var denied = []string{"NOAUTH", "WRONGPASS", "NOPERM", "AUTH", "Client sent AUTH", "invalid password"}

// failure wraps an error of the library with what was being done, and marks those by which the registry is unavailable.
func (r *Registry) failure(doing string, err error) error {
	if err == nil {
		return nil
	}
	has := func(list []string) bool {
		for _, prefix := range list {
			if goredis.HasErrorPrefix(err, prefix) {
				return true
			}
		}
		return false
	}
	var answer goredis.Error
	switch {
	case has(denied):
		return fmt.Errorf("%s at redis %s: access denied, look at REDIS_USERNAME and REDIS_PASSWORD: %w", doing, r.where, err)
	case has(unavailable):
		return fmt.Errorf("%s at redis %s: %w: %w", doing, r.where, registry.ErrUnavailable, err)
	case errors.As(err, &answer), errors.Is(err, context.Canceled), errors.Is(err, goredis.ErrClosed):
		return fmt.Errorf("%s at redis %s: %w", doing, r.where, err)
	default: // the network, or no answer in time
		return fmt.Errorf("%s at redis %s: %w: %w", doing, r.where, registry.ErrUnavailable, err)
	}
}
