package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func newTaskShow() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:     "show ID",
		Short:   "Show a task with its result",
		Example: `  skalds task show 0198a1b2 -o json`,
		Args:    arguments("ID"),
	}, func(ctx context.Context, c *client.Client, args []string) (task.Task, error) {
		return c.Get(ctx, args[0])
	}, printTask)
}
