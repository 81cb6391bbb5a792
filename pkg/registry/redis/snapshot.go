package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
)

const (
	// chunk is how many nodes one round trip of a snapshot reads.
	chunk = 1000
	// MaxNodes is how many ids the index may hold. With more, a snapshot is an error, since a node that is not read
	// would seem lost.
	MaxNodes = 100_000
	// wrongType is how the server answers a command for another type of key.
	wrongType = "WRONGTYPE"
)

// Snapshot implements [registry.Registry]. The nodes are ordered by id. Each round trip has the configured timeout.
func (r *Registry) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	snapshot, err := r.snapshot(ctx)
	if err != nil {
		return registry.Snapshot{}, r.failure("snapshot of the nodes", err)
	}
	return snapshot, nil
}

func (r *Registry) snapshot(ctx context.Context) (registry.Snapshot, error) {
	var run runID
	if err := r.seeMasters(ctx, &run); err != nil {
		return registry.Snapshot{}, err
	}
	if err := r.followed(ctx, &run); err != nil {
		return registry.Snapshot{}, err
	}
	var index *goredis.StringSliceCmd
	if err := r.read(ctx, &run, func(p goredis.Pipeliner) { index = p.ZRange(ctx, indexKey, 0, MaxNodes) }); err != nil {
		return registry.Snapshot{}, err
	}
	ids, err := index.Result()
	if err != nil {
		return registry.Snapshot{}, fmt.Errorf("index %s: %w", indexKey, err)
	}
	if len(ids) > MaxNodes {
		return registry.Snapshot{}, fmt.Errorf("the index %s holds more than %d ids", indexKey, MaxNodes)
	}
	nodes := make([]registry.Node, 0, len(ids))
	var foreign []string
	decode := newDecoder()
	for ids := range slices.Chunk(ids, chunk) {
		cmds := make([]*goredis.StringSliceCmd, len(ids))
		err := r.read(ctx, &run, func(p goredis.Pipeliner) {
			for i, id := range ids {
				cmds[i] = readNode(ctx, id)
				_ = p.Process(ctx, cmds[i]) // only queues it
			}
		})
		if err != nil {
			return registry.Snapshot{}, err
		}
		for i, cmd := range cmds {
			nodes = append(nodes, registry.Node{})
			_, found, err := decode.node(&nodes[len(nodes)-1], ids[i], cmd.Val())
			if cmd.Err() != nil { // not a hash
				err = cmd.Err()
			}
			if err != nil {
				foreign = append(foreign, ids[i])
				r.foreign.report(r, ids[i], err)
			}
			if err != nil || !found {
				nodes = nodes[:len(nodes)-1]
			}
		}
	}
	if err := r.seeMasters(ctx, &run); err != nil {
		return registry.Snapshot{}, err
	}
	r.foreign.forgetOthers(foreign)
	slices.SortFunc(nodes, func(a, b registry.Node) int { return cmp.Compare(a.ID, b.ID) })
	return registry.Snapshot{RunID: run.id, Nodes: nodes}, nil
}

// followed returns an error unless all replicas to wait for still follow this server, which proves that no other server
// has confirmed heartbeats. It writes something first, since replicas that stopped following may have all that was
// written before.
func (r *Registry) followed(ctx context.Context, run *runID) error {
	if r.wait == 0 {
		return nil
	}
	var have *goredis.IntCmd
	err := r.read(ctx, run, func(p goredis.Pipeliner) {
		p.Set(ctx, probeKey, "", registry.KeyTTL)
		have = r.waitFor(ctx, p, r.wait)
	})
	if err != nil {
		return err
	}
	if have.Val() < int64(r.wait) {
		return r.behind(have.Val())
	}
	return nil
}

// read makes one round trip. For a single server the same pipeline, and so the same connection, asks for the run id,
// which names the run that answered. A key of a wrong type fails only its own command, which the caller looks at; any
// other error is returned.
func (r *Registry) read(ctx context.Context, run *runID, fill func(p goredis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var info *goredis.StringCmd
	cmds, err := r.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		if r.cluster == nil {
			info = p.Info(ctx, "server")
		}
		fill(p)
		return nil
	})
	if err != nil { // the first command's that failed
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil && !goredis.HasErrorPrefix(err, wrongType) {
				return err
			}
		}
		if !goredis.HasErrorPrefix(err, wrongType) {
			return err //nolint:wrapcheck // failure wraps it
		}
	}
	if info == nil {
		return nil
	}
	id, err := parseRunID(info.Val())
	if err != nil {
		return err
	}
	return run.see(id)
}

// seeMasters reads the run ids of all masters of a cluster. Without a cluster it does nothing. In a cluster one
// pipeline goes to many servers, so their ids are read before and after all other reads: if a server restarted or was
// replaced in between, they differ.
func (r *Registry) seeMasters(ctx context.Context, run *runID) error {
	if r.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var mu sync.Mutex
	var ids []string
	err := r.cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("run id of %s: %w", c.Options().Addr, err)
		}
		id, err := parseRunID(info)
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return err //nolint:wrapcheck // failure wraps it
	}
	slices.Sort(ids)
	return run.see(strings.Join(ids, ","))
}

// runID is the run of the server that answers a snapshot.
type runID struct{ id string }

func (r *runID) see(id string) error {
	switch r.id {
	case "":
		r.id = id
	case id:
	default:
		return fmt.Errorf("%w: the server was restarted or replaced while it was read (run %s, then %s)",
			registry.ErrUnavailable, r.id, id)
	}
	return nil
}

func parseRunID(info string) (string, error) {
	for line := range strings.Lines(info) {
		if id, found := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); found && id != "" {
			return id, nil
		}
	}
	return "", errors.New("INFO server has no run_id, without which a restart cannot be noticed: use Redis 7.0 or newer")
}

// Node implements [registry.Registry]. Heartbeat and list are read as of one moment. A list that was lost is
// [registry.ErrIncomplete] until the node's next heartbeat.
func (r *Registry) Node(ctx context.Context, id string) (registry.Node, bool, error) {
	if registry.CheckID(id) != nil {
		return registry.Node{}, false, nil // no node can have it
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	doing := "read of node " + id
	hash := readNode(ctx, id)
	var list *goredis.MapStringStringCmd
	_, err := r.client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		_ = p.Process(ctx, hash) // only queues it
		list = p.HGetAll(ctx, tasksKey(id))
		return nil
	})
	if err != nil {
		return registry.Node{}, false, r.failure(doing, err)
	}
	var n registry.Node
	length, found, err := newDecoder().node(&n, id, hash.Val())
	if err != nil {
		return registry.Node{}, false, fmt.Errorf("%s at redis %s: key %s: %w", doing, r.where, nodeKey(id), err)
	}
	if !found {
		return registry.Node{}, false, nil
	}
	if length != len(list.Val()) {
		return registry.Node{}, false, fmt.Errorf("%s at redis %s: %w: it should hold %d entries and holds %d",
			doing, r.where, registry.ErrIncomplete, length, len(list.Val()))
	}
	if n.Tasks, err = decodeTasks(list.Val()); err != nil {
		return registry.Node{}, false, fmt.Errorf("%s at redis %s: key %s: %w", doing, r.where, tasksKey(id), err)
	}
	return n, true, nil
}

// Foreign returns how often a node's key could not be read because another program wrote it. Snapshots leave such nodes
// out.
func (r *Registry) Foreign() int64 { return r.foreign.count.Load() }

// foreignKeys logs each unreadable node once, as long as it stays so.
type foreignKeys struct {
	count  atomic.Int64
	mu     sync.Mutex
	logged map[string]bool
}

func (f *foreignKeys) report(r *Registry, id string, err error) {
	f.count.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logged[id] {
		return
	}
	if f.logged == nil {
		f.logged = make(map[string]bool)
	}
	f.logged[id] = true
	r.log.Warn("a node's key in redis cannot be read and is left out; did another program write it?",
		"redis", r.where, "key", nodeKey(id), "error", err)
}

// forgetOthers forgets the nodes that are not in the list, so that the memory is bounded by one snapshot.
func (f *foreignKeys) forgetOthers(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.logged)
	for _, id := range ids {
		f.logged[id] = true
	}
}
