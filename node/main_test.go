package node_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster and what a test does with it; a failure of either ends the test.
type world struct {
	*nodetest.Cluster
	t   *testing.T
	ctx context.Context
}

// bubble runs f with a cluster in which time passes only while everybody waits.
func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's time: whoever waits for ever fails
		defer cancel()
		w := &world{nodetest.New(), t, ctx}
		defer w.Close()
		f(w)
	})
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// node makes a node of the cluster that logs nothing.
func (w *world) node(id string, change func(*node.Config), opts ...node.Option) *node.Node {
	w.t.Helper()
	cfg := nodetest.Config(id)
	if change != nil {
		change(&cfg)
	}
	opts = append(w.Options(), append([]node.Option{node.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	n, err := node.New(cfg, opts...)
	w.ok(err)
	return n
}

func (w *world) start(n *node.Node) (stop func() error) {
	w.t.Helper()
	stop, err := w.Start(w.ctx, n)
	w.ok(err)
	return stop
}

// assign gives a node new tasks of a class.
func (w *world) assign(nodeID, class string, n int) []events.AssignedTask {
	w.t.Helper()
	var list []events.AssignedTask
	for range n {
		t, err := w.Task(class, nil)
		w.ok(err)
		list = append(list, t)
	}
	w.ok(w.Assign(w.ctx, nodeID, list...))
	return list
}

// final waits for the final report of a claim.
func (w *world) final(t events.AssignedTask) task.Report {
	w.t.Helper()
	r, err := w.AwaitReport(w.ctx, t.ClaimID, func(r task.Report) bool { return r.Kind.Final() })
	w.ok(err)
	return r
}

// kinds are the kinds of a claim's reports so far.
func (w *world) kinds(t events.AssignedTask) []task.Kind {
	var list []task.Kind
	for _, r := range w.Reports(t.ClaimID) {
		list = append(list, r.Kind)
	}
	return list
}

// blocker is a handler that runs until it is let go or its context ends.
type blocker struct {
	began chan string // task ids
	free  chan struct{}
	ended chan error // causes
}

func newBlocker() *blocker {
	return &blocker{began: make(chan string, 1000), free: make(chan struct{}), ended: make(chan error, 1000)}
}

func (b *blocker) run(ctx context.Context, _ any) (any, error) {
	b.began <- node.TaskFrom(ctx).ID
	select {
	case <-b.free:
		return "freed", nil
	case <-ctx.Done():
		b.ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

func (b *blocker) stubborn(ctx context.Context, _ any) (any, error) {
	b.began <- node.TaskFrom(ctx).ID
	<-b.free
	return nil, context.Cause(ctx)
}

func noop(context.Context, any) (any, error) { return nil, nil }

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

// hooked is a registry whose heartbeats a test can bend.
type hooked struct {
	session.Registry
	mu   sync.Mutex
	beat func(ctx context.Context, n *registry.Node, beat func(context.Context, *registry.Node) error) error
	sent []time.Time // of every heartbeat
}

func (h *hooked) Heartbeat(ctx context.Context, n *registry.Node) error {
	h.mu.Lock()
	f := h.beat
	h.sent = append(h.sent, time.Now())
	h.mu.Unlock()
	if f == nil {
		return h.Registry.Heartbeat(ctx, n)
	}
	return f(ctx, n, h.Registry.Heartbeat)
}

func (h *hooked) set(f func(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = f
}

// at is when heartbeat i was sent; -1 is the last.
func (h *hooked) at(i int) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < 0 {
		i += len(h.sent)
	}
	return h.sent[i]
}

func refuse(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error {
	return registry.ErrUnavailable
}
