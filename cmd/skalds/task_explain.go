package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

func newTaskExplain() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:   "explain ID",
		Short: "Say why a task is where it is, or why it waits and what would help",
		Long: `Say in words why a task is where it is. For one that waits it says what keeps it waiting (no node has its class, all that match are full, a rate
limit, a pause, ...), what would help, and how many nodes each condition leaves.`,
		Example: `  skalds task explain 0198a1b2`,
		Args:    arguments("ID"),
	}, func(ctx context.Context, c *client.Client, args []string) (client.Explanation, error) {
		return c.Explain(ctx, args[0])
	}, func(w io.Writer, f format, e *client.Explanation) error {
		return printExplanation(w, f, e, time.Now())
	})
}

func printExplanation(w io.Writer, f format, e *client.Explanation, now time.Time) error {
	switch f {
	case asJSON:
		return printJSON(w, e)
	case asName:
		return printf(w, "%s\n", cell(e.Reason))
	case asTable:
	}
	text := printable(e.Text, false)
	if e.Help != "" {
		text += "\n" + printable(e.Help, false)
	}
	if err := printf(w, "%s\n\n", text); err != nil {
		return err
	}
	p := newPairs(w)
	p.add("Reason", e.Reason)
	p.add("Status", string(e.Status))
	p.addIf("Queue", e.Queue)
	if left := time.UnixMilli(e.Until).Sub(now); e.Until > 0 && left > 0 {
		p.add("Until", "in "+human(left))
	}
	if pl := e.Placement; pl != nil {
		p.add("Strategy", pl.Strategy)
		p.add("Nodes", nodesLeft(pl))
		var best []string
		for _, b := range pl.Best {
			best = append(best, fmt.Sprintf("%s (%s)", b.Node, b.Score))
		}
		p.addIf("Best", strings.Join(best, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(e.NotTaking)) {
		p.add("Not taking", id+": "+e.NotTaking[id])
	}
	return p.flush()
}

// nodesLeft says how many nodes there are and what takes them away.
func nodesLeft(p *client.Placement) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{p.NoClass, "without the class"}, {p.NoLabels, "without the labels"}, {p.TooSmall, "too small"}, {p.AntiAffinity, "beside a task of the same key"},
		{p.Avoided, "crashed by it"}, {p.RateLimited, "at their rate limit"}, {p.Kept, "kept free"}, {p.Full, "full"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := fmt.Sprintf("%d take work", p.Nodes)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}
