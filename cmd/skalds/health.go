package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

// healthTimeout is how long the server may take to say how it is.
const healthTimeout = 4 * time.Second

func newHealth() *cobra.Command {
	var flags apiFlags
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a controller whether it is ready",
		Long: `Ask a controller whether it is ready, for the health check of a container. The exit code is 0 if it is, 1 if it is not, with what
is missing, and 3 if it cannot be reached.`,
		Example: `  skalds health`,
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(func(c *client.Client) error { return health(cmd, c) })
		},
	}
	flags.addServer(cmd)
	return cmd
}

func health(cmd *cobra.Command, c *client.Client) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
	defer cancel()
	missing, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		reasons := make([]string, len(missing))
		for i, m := range missing {
			reasons[i] = m.Name + ": " + m.Reason
		}
		return errors.New("not ready: " + strings.Join(reasons, "; "))
	}
	return printf(cmd.OutOrStdout(), "ready\n")
}
