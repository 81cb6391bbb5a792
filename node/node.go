package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/interrupt"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Node runs tasks. Make one with [New], give it handlers, then call [Node.Run] once.
type Node struct {
	cfg     Config
	log     *slog.Logger
	seams   session.Seams // what is not set is made from cfg
	version string
	hurry   func()    // closes hurried, once
	hurried loop.Wake // when closed, no drain waits for what runs

	mu         sync.Mutex
	ran        bool
	handlers   map[string]Handler // by class
	middleware []Middleware
}

// New makes a node. It connects to nothing. The error names every problem of the configuration, also those that
// [ConfigFromEnv] met.
func New(cfg Config, opts ...Option) (*Node, error) {
	n := &Node{
		cfg: cfg, seams: session.Seams{Clock: clock.System{}}, version: builtVersion(), handlers: map[string]Handler{}, hurried: make(loop.Wake),
	}
	n.hurry = sync.OnceFunc(func() { close(n.hurried) })
	for _, opt := range opts {
		opt(n)
	}
	if err := n.cfg.check(); err != nil {
		return nil, err
	}
	if n.log == nil {
		n.log = defaultLogger(&cfg)
	}
	n.log = n.log.With("node", cfg.ID)
	return n, nil
}

// ID returns the node's id.
func (n *Node) ID() string { return n.cfg.ID }

// Run registers the node and runs tasks until ctx ends. Then it drains: it takes no new work and releases what is
// queued. It lets handlers end within DRAIN_SOFT, ends the contexts of those that are left with the cause
// [ErrDraining], and waits up to DRAIN_HARD for them. Then it leaves the registry. [Node.Hurry] cuts DRAIN_SOFT short.
// [Node.RunUntilSignal] is for programs that end by signals.
//
// Run returns nil after a clean drain. Otherwise the error names the handlers that did not return; they go on, and
// their tasks run elsewhere when the node's lease is over. Whatever else goes wrong (Kafka or Redis is down, topics are
// missing, the id is taken) is logged and tried again. Run can be called once.
func (n *Node) Run(ctx context.Context) error {
	handlers, err := n.chain()
	if err != nil {
		return err
	}
	template := n.template(handlers)
	if err := n.checkTemplate(&template); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	seams, closeAll, err := n.connect()
	if err != nil {
		return err
	}
	defer closeAll()
	return session.Serve(ctx, session.Config{
		Node: &n.cfg.Node, Template: template, Handlers: handlers, Log: n.log, Hurry: n.hurried, Seams: seams,
	})
}

// Hurry has the drain end the contexts of what still runs at once, not after DRAIN_SOFT. It may be called before the
// drain begins, by any goroutine, and more than once.
func (n *Node) Hurry() { n.hurry() }

// RunUntilSignal is Run for the main function of a program. The first SIGINT or SIGTERM ends the context, so that the
// node drains; a second one hurries the drain, as [Node.Hurry] does; a third ends the process as an uncaught signal
// does.
func (n *Node) RunUntilSignal(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := interrupt.Watch(func() bool { cancel(); return true }, func() bool { n.Hurry(); return true })
	defer stop()
	return n.Run(ctx)
}

// builtVersion returns the version of the main module.
func builtVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// template returns what every heartbeat says.
func (n *Node) template(handlers map[string]session.Handler) registry.Node {
	host, err := os.Hostname()
	if err != nil {
		host = "" // the address is for people only
	}
	return registry.Node{
		ID: n.cfg.ID, Incarnation: session.NewIncarnation(), Mode: string(n.cfg.Mode), State: registry.Online,
		Classes: slices.Sorted(maps.Keys(handlers)), Labels: n.cfg.Labels, Capacity: n.cfg.Capacity, Prefetch: n.cfg.Prefetch,
		CapacityByClass: n.cfg.CapacityByClass,
		Protocol:        session.Protocol, Address: host, Version: n.version,
	}
}

// checkTemplate returns what no controller would accept, and warns of what is probably a mistake.
func (n *Node) checkTemplate(t *registry.Node) error {
	if err := registry.Check(t); err != nil {
		return err
	}
	if why := registry.Validate(t, n.seams.Clock.Now().UnixMilli()); why != "" {
		return fmt.Errorf("no controller would give work to node %s: %s", t.ID, why)
	}
	for class := range t.CapacityByClass {
		if !slices.Contains(t.Classes, class) {
			n.log.Warn("NODE_CAPACITY_BY_CLASS names a class that has no handler here", "class", class, "classes", t.Classes)
		}
	}
	return nil
}
