package main

import (
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
