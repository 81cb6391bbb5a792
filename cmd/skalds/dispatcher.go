package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

func newDispatcher() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dispatcher",
		Short: "See what the dispatcher does and why tasks wait; pause it",
	}, newDispatcherStatus(), newDispatcherPending(),
		pauseCommand("pause", "Let nothing begin any more, or nothing of a class or a namespace",
			`Let nothing begin any more, or nothing of a class or a namespace. What runs goes on; what was sent to a node and has not begun is called back. It holds
for all controllers, also after restarts, until 'skalds dispatcher resume'.`, (*client.Client).PauseDispatch),
		pauseCommand("resume", "End a pause",
			`Let begin again what 'skalds dispatcher pause' kept waiting, in the same order. Each pause is ended for itself: that of the dispatcher, of a class, of a
namespace.`, (*client.Client).ResumeDispatch))
}

func newDispatcherStatus() *cobra.Command {
	cmd := newStrategyGet()
	cmd.Use, cmd.Short, cmd.Example = "status", "Show what the dispatcher does, its limits and its pauses", `  skalds dispatcher status`
	return cmd
}

func pauseCommand(verb, short, long string, do func(*client.Client, context.Context, client.Scope) (client.Settings, error)) *cobra.Command {
	var flags apiFlags
	var class, namespace string
	cmd := &cobra.Command{
		Use: verb, Short: short, Long: long,
		Example: "  skalds dispatcher " + verb + "\n  skalds dispatcher " + verb + " --class resize",
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if class == "" && cmd.Flags().Changed("class") {
				return usage(cmd, "--class is empty: say which, or leave it out for all")
			}
			scope := client.Scope{ClassName: class}
			if cmd.Flags().Changed("namespace") {
				scope.Namespace = &namespace
			}
			return ask(&flags, func(ctx context.Context, c *client.Client) (client.Settings, error) { return do(c, ctx, scope) }, printSettings)
		},
	}
	cmd.Flags().StringVar(&class, "class", "", "only this class")
	cmd.Flags().StringVar(&namespace, "namespace", "", "only this namespace; empty is that of tasks without one")
	flags.add(cmd)
	return cmd
}

func newDispatcherPending() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:   "pending",
		Short: "Group all tasks that wait by reason",
		Long: `Group all tasks that wait by the reason for which they do. Tasks that ask for the same (class, labels, namespace, keys, priority, ...) wait in one
queue; of several queues with one reason it explains the largest. 'skalds task explain' says of one task why it waits and what would help.`,
		Example: `  skalds dispatcher pending`,
		Args:    arguments(),
	}, func(ctx context.Context, c *client.Client, _ []string) (client.Pending, error) { return c.Pending(ctx) }, printPending)
}

func printPending(w io.Writer, f format, p *client.Pending) error {
	if f == asJSON {
		return printJSON(w, p)
	}
	if f == asName {
		for i := range p.Groups {
			if err := printf(w, "%s\n", cell(p.Groups[i].Reason)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(p.Groups) == 0 {
		return printf(w, "No task waits.\n")
	}
	c := columns(w)
	if err := row(c, "TASKS", "QUEUES", "REASON", "WHY"); err != nil {
		return err
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		queues, why := "", g.Text
		if g.Queues > 0 {
			queues = thousands(int64(g.Queues))
		}
		if g.Queues > 1 {
			why = "The largest queue: " + why
		}
		if err := row(c, thousands(g.Tasks), queues, g.Reason, why); err != nil {
			return err
		}
	}
	return flush(c)
}
