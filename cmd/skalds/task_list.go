package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// maxPage is how many tasks are asked for at once.
const maxPage = 1000

func newTaskList() *cobra.Command {
	var flags apiFlags
	var q client.Query
	var statuses []string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the newest first",
		Example: `  skalds task list --status Running,Assigning
  skalds task list --class demo.echo --limit 0 -o name    the ids of all
  skalds task list --executor node-1 -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Status, err = parseStatuses(cmd, statuses); err != nil {
				return err
			}
			if limit < 0 {
				return usage(cmd, "--limit is %d, want 0 (all) or more", limit)
			}
			return flags.with(func(c *client.Client) error { return listTasks(cmd, c, flags.format, q, limit) })
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&statuses, "status", nil, "only these `statuses`: Created, Assigning, Running, Paused, Finished, Failed, Cancelled")
	f.StringVar(&q.ClassName, "class", "", "only this `class`")
	f.StringVar(&q.Executor, "executor", "", "only tasks of this `node`")
	f.StringVar(&q.IDPrefix, "id-prefix", "", "only ids that begin with this `text`")
	f.IntVar(&limit, "limit", 50, "how many at most; 0 for all")
	flags.add(cmd)
	return cmd
}

// listTasks prints page after page, so that a long list is never in memory as a whole.
func listTasks(cmd *cobra.Command, c *client.Client, f format, q client.Query, limit int) error {
	table := taskTable{w: cmd.OutOrStdout(), format: f}
	for left := limit; ; {
		q.PageSize = maxPage
		if limit > 0 {
			q.PageSize = min(left, maxPage)
		}
		page, err := c.List(cmd.Context(), q)
		if err != nil {
			return err
		}
		if len(page.Items) > 0 || !table.any {
			if err := table.add(page.Items); err != nil {
				return err
			}
		}
		left -= len(page.Items)
		q.Cursor = page.NextCursor
		if q.Cursor == "" || limit > 0 && left <= 0 {
			return table.end()
		}
	}
}

func parseStatuses(cmd *cobra.Command, names []string) ([]task.Status, error) {
	var list []task.Status
	for _, name := range names {
		s, ok := task.ParseStatus(strings.TrimSpace(name))
		if !ok {
			return nil, usage(cmd, "--status is %q, want one of %s", name, join(task.All()))
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}

func join[T ~string](list []T) string {
	text := make([]string, len(list))
	for i, v := range list {
		text[i] = string(v)
	}
	return strings.Join(text, ", ")
}
