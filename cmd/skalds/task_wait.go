package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func newTaskWait() *cobra.Command {
	var flags apiFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait for the end of a task",
		Long:  `Wait for the end of a task and print it with its result. The exit code is 1 unless the task is Finished, also when --timeout is over.`,
		Example: `  skalds task wait 0198a1b2 --timeout 30s
  skalds task wait "$(skalds task submit demo.sleep -o name)"`,
		Args: arguments("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(func(c *client.Client) error { return waitAndPrint(cmd, c, flags.format, args[0], timeout) })
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait, such as 30s; 0 waits for ever")
	flags.add(cmd)
	return cmd
}

// waitAndPrint waits for the end of a task, prints it, and says no unless it finished.
func waitAndPrint(cmd *cobra.Command, c *client.Client, f format, id string, timeout time.Duration) error {
	if timeout < 0 {
		return usage(cmd, "--timeout is %s, want 0 or more", timeout)
	}
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	t, err := c.Wait(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("task %s has not ended within %s", id, timeout)
	}
	if err != nil {
		return err
	}
	if err := printTask(cmd.OutOrStdout(), f, &t); err != nil {
		return err
	}
	if t.LifecycleStatus != task.Finished {
		return fmt.Errorf("task %s is %s", t.ID, t.LifecycleStatus)
	}
	return nil
}
