package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

// apiFlags are the flags of the commands that call a server.
type apiFlags struct {
	cmd    *cobra.Command
	server string
	format format
}

// add gives a command the flags of the server and of the output.
func (f *apiFlags) add(cmd *cobra.Command) {
	f.addServer(cmd)
	f.format = asTable
	cmd.Flags().VarP(&f.format, "output", "o", "how to print: table, json (all of it) or name (ids only)")
}

// addServer gives a command the flag of the server.
func (f *apiFlags) addServer(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringVar(&f.server, "server", "", "`URL` of the server (env SKALDS_SERVER; default http://127.0.0.1:8000); API_TOKEN is its token")
}

// connect makes a client of the server that flag or environment name. It connects to nothing.
func (f *apiFlags) connect() (*client.Client, error) {
	cfg, err := config.LoadClient()
	if err != nil {
		return nil, err
	}
	if f.server != "" {
		cfg.Server = f.server
	}
	if err := cfg.Validate(); err != nil {
		return nil, usage(f.cmd, "--server is %q, want a URL such as https://skalds.example.org", f.server)
	}
	return client.New(client.Config{Server: cfg.Server, Token: string(cfg.APIToken)})
}

// with calls do with a client of the server.
func (f *apiFlags) with(do func(*client.Client) error) error {
	c, err := f.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// ask asks the server and shows the answer.
func ask[T any](f *apiFlags, question func(context.Context, *client.Client) (T, error), show func(io.Writer, format, *T) error) error {
	return f.with(func(c *client.Client) error {
		answer, err := question(f.cmd.Context(), c)
		if err != nil {
			return err
		}
		return show(f.cmd.OutOrStdout(), f.format, &answer)
	})
}

// askCommand turns cmd into a command that asks the server and shows the answer.
func askCommand[T any](cmd *cobra.Command, question func(context.Context, *client.Client, []string) (T, error), show func(io.Writer, format, *T) error,
) *cobra.Command {
	var flags apiFlags
	flags.add(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return ask(&flags, func(ctx context.Context, c *client.Client) (T, error) { return question(ctx, c, args) }, show)
	}
	return cmd
}

// each calls do for each id and returns the results of the calls that succeeded. A refusal of one does not keep the
// others from being called; a server that cannot be reached does.
func each[T any](ctx context.Context, ids []string, do func(id string) (T, error)) ([]T, error) {
	done := make([]T, 0, len(ids))
	var errs []error
	for _, id := range ids {
		of, err := do(id)
		if err == nil {
			done = append(done, of)
			continue
		}
		errs = append(errs, err)
		if ctx.Err() != nil || unreachable(err) {
			break
		}
	}
	return done, errors.Join(errs...)
}
