package main

import (
	"github.com/spf13/cobra"
)

func newTaskShow() *cobra.Command {
	var flags apiFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a task with its result",
		Example: `  skalds task show 0198a1b2 -o json`,
		Args:    arguments("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			t, err := c.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printTask(cmd.OutOrStdout(), flags.format, &t)
		},
	}
	flags.add(cmd)
	return cmd
}
