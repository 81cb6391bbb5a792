package main

import (
	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/cmd/skalds/internal/bench"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/config"
)

func newNode() *cobra.Command {
	var benchClass string
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run a node that knows the demo classes",
		Long: `Run a node process, configured by the environment; .env.example lists every variable. It runs the demo classes, so that a
cluster can be tried without a line of code; a node of your own is a Go program with the package node.

Kafka, Redis and the controller may come up later than the node: it waits for them. SIGTERM drains it: what runs may end within
DRAIN_SOFT, then it has DRAIN_HARD to return, and what is left goes to other nodes. A second signal goes to DRAIN_HARD at once, a
third kills.`,
		Example: `  skalds node                                                  joins 'skalds dev'
  KAFKA_HOST=kafka REDIS_HOST=redis NODE_CAPACITY=4 skalds node
  NODE_LABELS=zone=a,gpu=true skalds node
  NODE_CAPACITY=8 NODE_CAPACITY_BY_CLASS=resize:4 skalds node  runs 8 tasks at once, 4 of class resize`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadNode()
			if err != nil {
				return err
			}
			log := newLogger(cmd.ErrOrStderr(), cfg.Level.Slog())
			n, err := node.New(node.Config{Node: cfg}, node.WithLogger(log), node.WithVersion(version))
			if err != nil {
				return err
			}
			if benchClass != "" {
				node.Handle(n, benchClass, bench.Sleep)
			} else {
				demo.Register(n)
			}
			onSecond(cmd.Context(), n.Hurry)
			return n.Run(cmd.Context())
		},
	}
	// For the recovery scenario of the bench: the one class of this node, which no other node has.
	cmd.Flags().StringVar(&benchClass, "bench-class", "", "")
	_ = cmd.Flags().MarkHidden("bench-class")
	return cmd
}
