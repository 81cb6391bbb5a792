package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func newTaskCancel() *cobra.Command {
	return steerCommand(&cobra.Command{
		Use:   "cancel ID...",
		Short: "Cancel tasks",
		Long: `Cancel tasks. One that no node holds is cancelled at once; for one that runs the wish is stored and its node carries it out
('skalds task wait' waits for that). A task that has ended otherwise is refused (exit code 1).`,
		Example: `  skalds task cancel 0198a1b2
  skalds task cancel $(skalds task list --status Created -o name)`,
	}, (*client.Client).Cancel)
}

func newTaskRetry() *cobra.Command {
	return steerCommand(&cobra.Command{
		Use:     "retry ID...",
		Short:   "Run ended tasks again",
		Long:    `Run tasks again that have ended, each as a new attempt of the same task. A task that has not ended is refused (exit code 1).`,
		Example: `  skalds task retry 0198a1b2`,
	}, (*client.Client).Retry)
}

// steerCommand does one thing to each task that is named. One that is refused does not keep the others from it.
func steerCommand(cmd *cobra.Command, do func(*client.Client, context.Context, string) (task.Task, error)) *cobra.Command {
	var flags apiFlags
	cmd.Args = arguments("ID...")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		c, err := flags.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		var done []task.Task
		var errs []error
		for _, id := range ids {
			t, err := do(c, cmd.Context(), id)
			if err != nil {
				errs = append(errs, err)
				if cmd.Context().Err() != nil || unreachable(err) {
					break
				}
				continue
			}
			done = append(done, t)
		}
		table := taskTable{w: cmd.OutOrStdout(), format: flags.format}
		if len(done) > 0 {
			errs = append(errs, table.add(done))
		}
		return errors.Join(append(errs, table.end())...)
	}
	flags.add(cmd)
	return cmd
}
