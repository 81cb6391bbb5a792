package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func newTaskCancel() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel tasks",
		Long: `Cancel tasks. One that no node holds is cancelled at once; for one that runs the request is stored and its node carries it out
('skalds task wait' waits for that). A task that has ended otherwise is refused (exit code 1).

In place of ids, --status, --class, --executor and --id-prefix select tasks: with --dry-run it counts them, with --yes it cancels them.`,
		Example: `  skalds task cancel 0198a1b2
  skalds task cancel --class resize --status Created,Running --dry-run
  skalds task cancel --class resize --yes`,
	}, "cancel", "cancelled", (*client.Client).Cancel)
}

func newTaskPause() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "pause [ID...]",
		Short: "Pause tasks",
		Long: `Pause tasks. One that waits, also at its node, is held back. One that runs is paused once its handler comes to a place where it can
rest (Task.WaitWhilePaused in the Go SDK); until then it is shown as Running, to be Paused, and one that has no such place runs on.
A paused run keeps its place at its node. If the node goes, the task stays Paused, and resume starts it anew elsewhere.

In place of ids, --status, --class, --executor and --id-prefix select tasks: with --dry-run it counts them, with --yes it pauses them.`,
		Example: `  skalds task pause 0198a1b2
  skalds task pause --class resize --yes`,
	}, "pause", "paused", (*client.Client).Pause)
}

func newTaskResume() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "resume [ID...]",
		Short: "Let paused tasks go on, or undo a request",
		Long: `Let paused tasks go on. It undoes a pause or a cancel that is not yet carried out, too. A task that has ended is refused (exit code 1).

In place of ids, --status, --class, --executor and --id-prefix select tasks: with --dry-run it counts them, with --yes it resumes them.`,
		Example: `  skalds task resume 0198a1b2
  skalds task resume --status Paused --yes`,
	}, "resume", "resumed", (*client.Client).Resume)
}

func newTaskRetry() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "retry [ID...]",
		Short: "Run ended tasks again",
		Long: `Run tasks again that have ended, each as a new attempt of the same task. A task that has not ended is refused (exit code 1).

In place of ids, --status, --class, --executor and --id-prefix select tasks: with --dry-run it counts them, with --yes it retries them.`,
		Example: `  skalds task retry 0198a1b2
  skalds task retry --status Failed --class resize --yes`,
	}, "retry", "retried", (*client.Client).Retry)
}

func newTaskUpdate() *cobra.Command {
	var flags apiFlags
	var attachments string
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Replace a task's attachments",
		Long: `Replace a task's attachments as a whole. A task that waits has them when it starts; one that runs gets them through Task.Updates of the
Go SDK. A task that has ended is refused (exit code 1).`,
		Example: `  skalds task update 0198a1b2 --attachments '{"x":2}'
  skalds task update 0198a1b2 --attachments @photo.json`,
		Args: arguments("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if attachments == "" {
				return usage(cmd, "--attachments is missing; null is none")
			}
			raw, err := readAttachments(cmd, attachments)
			if err != nil {
				return err
			}
			return ask(&flags, func(ctx context.Context, c *client.Client) (task.Task, error) { return c.Update(ctx, args[0], raw) }, printTask)
		},
	}
	cmd.Flags().StringVarP(&attachments, "attachments", "a", "", "the handler's new parameters: `JSON`, @file, or - for standard input")
	flags.add(cmd)
	return cmd
}

// selection is which tasks a command is for, where they are not named.
type selection struct {
	statuses        []string
	class, executor string
	idPrefix        string
	all, dryRun, ok bool
}

func (s *selection) add(cmd *cobra.Command, action string) {
	f := cmd.Flags()
	f.StringSliceVar(&s.statuses, "status", nil, "all of these `statuses`: Created, Assigning, Running, Paused, Finished, Failed, Cancelled")
	f.StringVar(&s.class, "class", "", "all of this `class`")
	f.StringVar(&s.executor, "executor", "", "all of this `node`")
	f.StringVar(&s.idPrefix, "id-prefix", "", "all whose ids begin with this `text`")
	f.BoolVar(&s.all, "all", false, "all there are")
	f.BoolVar(&s.dryRun, "dry-run", false, "only count those that are selected")
	f.BoolVar(&s.ok, "yes", false, action+" those that are selected")
}

// check reports whether tasks are selected; the error says what is wrong with the command line.
func (s *selection) check(cmd *cobra.Command, ids []string) (bool, error) {
	selects := len(s.statuses) > 0 || s.class+s.executor+s.idPrefix != "" || s.all
	switch {
	case selects && len(ids) > 0:
		return false, usage(cmd, "give ids, or flags that select tasks, not both")
	case !selects && len(ids) == 0:
		return false, usage(cmd, "ID is missing, or flags that select tasks")
	case s.dryRun && s.ok:
		return false, usage(cmd, "give --dry-run or --yes, not both")
	case selects && !s.dryRun && !s.ok:
		return false, usage(cmd, "give --dry-run to count the selected tasks, or --yes to go on")
	case !selects && (s.dryRun || s.ok):
		return false, usage(cmd, "--dry-run and --yes are for flags that select tasks")
	}
	return selects, nil
}

// changeCommand does one thing to each task that is named, or to all that are selected.
func changeCommand(cmd *cobra.Command, action, done string, do func(*client.Client, context.Context, string) (task.Task, error)) *cobra.Command {
	var flags apiFlags
	var sel selection
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		selects, err := sel.check(cmd, ids)
		if err != nil {
			return err
		}
		if selects && flags.format == asName {
			return usage(cmd, "--output is name, but what is selected is only counted; 'skalds task list' gives the ids")
		}
		status, err := parseStatuses(cmd, sel.statuses)
		if err != nil {
			return err
		}
		return flags.with(func(c *client.Client) error {
			if !selects {
				return changeEach(cmd, c, flags.format, ids, do)
			}
			filter := client.BulkFilter{LifecycleStatus: status, ClassName: sel.class, Executor: sel.executor, IDPrefix: sel.idPrefix}
			sum, err := c.Bulk(cmd.Context(), client.Bulk{Action: action, Filter: filter, All: sel.all, DryRun: sel.dryRun})
			return errors.Join(printBulk(cmd, flags.format, sum, done, sel.dryRun), err)
		})
	}
	sel.add(cmd, action)
	flags.add(cmd)
	return cmd
}

func printBulk(cmd *cobra.Command, f format, sum client.BulkResult, done string, dryRun bool) error {
	if f == asJSON {
		return printJSON(cmd.OutOrStdout(), sum)
	}
	verb := done
	if dryRun {
		verb = "would be " + done
	}
	return printf(cmd.OutOrStdout(), "%s of %s tasks %s, %s skipped\n",
		thousands(int64(sum.Changed)), thousands(int64(sum.Matched)), verb, thousands(int64(sum.Skipped)))
}

func changeEach(cmd *cobra.Command, c *client.Client, f format, ids []string, do func(*client.Client, context.Context, string) (task.Task, error)) error {
	done, err := each(cmd.Context(), ids, func(id string) (task.Task, error) { return do(c, cmd.Context(), id) })
	table := taskTable{w: cmd.OutOrStdout(), format: f}
	if len(done) > 0 {
		err = errors.Join(err, table.add(done))
	}
	return errors.Join(err, table.end())
}
