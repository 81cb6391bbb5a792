package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/config"
)

// Exit codes.
const (
	exitDone        = 0
	exitNo          = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitInterrupted = 130 // as shells have it: 128 + SIGINT
)

// run carries out one command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // each command takes the context of its execution
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := codeOf(ctx, err)
	if text := textOf(err, code); text != "" {
		_, _ = fmt.Fprintln(stderr, text)
	}
	return code
}

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "skalds",
		Short: "Dispatch tasks to nodes over Kafka, Redis and MongoDB",
		Long: `Skalds dispatches tasks: a controller takes them, places each on a node that runs its class, and keeps what became of it.

Exit codes: 0 done, 1 the server or the task said no, 2 wrong usage or configuration, 3 the server cannot be reached, 130 interrupted.`,
		Example: `  skalds dev                                                     a whole cluster in one process
  skalds task submit demo.echo --attachments '{"x":1}' --wait    a task, in another shell`,
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		newDev(), newController(), newNode(), newTask(), newNodes(), newStrategy(), newDispatcher(), newLimit(), newBenchCommand(), newHealth(), newVersion())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%v", err) })
	return root
}

// group makes a command that only has subcommands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		cmd.SuggestionsMinimumDistance = 2
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage(cmd, "there is no command %q%s", args[0], hint)
	}
	return cmd
}

// usageError is a command line that cannot be carried out.
type usageError struct {
	cmd  *cobra.Command
	text string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s: %s\nSee '%s --help'.", e.cmd.CommandPath(), e.text, e.cmd.CommandPath())
}

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd: cmd, text: fmt.Sprintf(format, args...)}
}

// arguments takes exactly these, by the names they have in the usage; a last one that ends in "..." stands for one or
// more.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		open := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(args) < len(names):
			return usage(cmd, "%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		case len(args) > len(names) && !open:
			return usage(cmd, "%q is one argument too many; it takes %s", args[len(names)], orNone(strings.Join(names, " ")))
		}
		return nil
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// codeOf returns the exit code for the error of a command.
func codeOf(ctx context.Context, err error) int {
	var wrong *usageError
	var bad *config.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &wrong), errors.As(err, &bad):
		return exitUsage
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))):
		return exitInterrupted
	case unreachable(err):
		return exitUnreachable
	}
	return exitNo
}

// textOf returns the error as a person reads it; empty if nothing is left to say.
func textOf(err error, code int) string {
	var wrong *usageError
	switch {
	case err == nil:
		return ""
	case code == exitInterrupted:
		return "interrupted"
	case errors.As(err, &wrong):
		return wrong.Error()
	}
	return "skalds: " + printable(strings.Join(sentences(err), "\nskalds: "), true)
}
