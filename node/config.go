package node

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/connect"
)

// Config is a node's configuration: the fields of config.Node, each documented there with its environment variable,
// default and range. Make one with [ConfigFromEnv] and change what should differ; the zero Config is not valid.
type Config struct {
	config.Node

	problem error // met by ConfigFromEnv; New returns it
}

// ConfigFromEnv reads the configuration from the environment. [New] returns what is wrong with it.
func ConfigFromEnv() Config {
	c, err := config.LoadNode()
	return Config{Node: c, problem: err}
}

// check returns what is wrong with the configuration.
func (c *Config) check() error {
	if c.problem != nil {
		return c.problem
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// Option changes what a node works with.
type Option func(*Node)

// WithSeams replaces the bus, the registry and the clock that the node uses, as far as these fields of s are set. It is
// for tests, see package nodetest. The caller closes what it passes.
func WithSeams(s session.Seams) Option {
	return func(n *Node) {
		if s.Bus != nil {
			n.seams.Bus = s.Bus
		}
		if s.Registry != nil {
			n.seams.Registry = s.Registry
		}
		if s.Clock != nil {
			n.seams.Clock = s.Clock
		}
	}
}

// WithVersion sets the version of your program, which people see in the list of nodes. The default is the version of
// the main module, as Go has built it in, or "(devel)".
func WithVersion(v string) Option {
	return func(n *Node) { n.version = v }
}

// WithLogger sets the node's logger. The default writes text to standard error, from LOG_LEVEL on.
func WithLogger(l *slog.Logger) Option {
	return func(n *Node) { n.log = l }
}

// WithClassCapacity bounds how many of the node's slots the tasks of a class take. It overrides NODE_CAPACITY_BY_CLASS
// for this class.
func WithClassCapacity(class string, slots int) Option {
	return func(n *Node) {
		all := config.ClassCapacities{class: slots}
		for other, slots := range n.cfg.CapacityByClass {
			if other != class {
				all[other] = slots
			}
		}
		n.cfg.CapacityByClass = all
	}
}

func defaultLogger(c *Config) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level.Slog()}))
}

// connect makes the clients that no option has set. They connect when they are first used. CloseAll closes them.
func (n *Node) connect() (seams session.Seams, closeAll func(), err error) {
	seams = n.seams
	var closers []func()
	closeAll = func() {
		for _, c := range closers {
			c()
		}
	}
	if seams.Bus == nil {
		client, err := connect.Kafka(n.cfg.Kafka, "skalds-node-"+n.cfg.ID, n.log)
		if err != nil {
			return seams, nil, fmt.Errorf("node: %w", err)
		}
		seams.Bus = session.BusOf(client)
		closers = append(closers, client.Close)
	}
	if seams.Registry == nil {
		r, err := connect.Redis(n.cfg.Redis, n.log)
		if err != nil {
			closeAll()
			return seams, nil, fmt.Errorf("node: %w", err)
		}
		seams.Registry = r
		closers = append(closers, func() {
			if err := r.Close(); err != nil {
				n.log.Debug("close the registry", "error", err)
			}
		})
	}
	return seams, closeAll, nil
}
