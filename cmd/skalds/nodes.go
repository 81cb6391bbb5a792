package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

func newNodes() *cobra.Command {
	return group(&cobra.Command{
		Use:   "nodes",
		Short: "Look at the nodes, and drain them",
	}, newNodesList(), newNodesShow(), newNodesDrain(), newNodesUndrain())
}

func newNodesDrain() *cobra.Command {
	return nodesCommand(&cobra.Command{
		Use:   "drain ID...",
		Short: "Let nodes finish what they run, and take nothing new",
		Long: `Drain nodes: each gets no new work, gives back what it has not started and what is paused, finishes what runs, and stays registered until it
is stopped. 'skalds nodes list' shows it as draining. It holds for the id, also over restarts of the node, until 'skalds nodes undrain'.`,
		Example: `  skalds nodes drain node-1`,
	}, "draining", (*client.Client).Drain)
}

func newNodesUndrain() *cobra.Command {
	return nodesCommand(&cobra.Command{
		Use:     "undrain ID...",
		Short:   "Let drained nodes take work again",
		Long:    `Let nodes take work again that were drained by 'skalds nodes drain'.`,
		Example: `  skalds nodes undrain node-1`,
	}, "not draining any more", (*client.Client).Undrain)
}

// nodesCommand does one thing to each node that is named.
func nodesCommand(cmd *cobra.Command, done string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	var flags apiFlags
	cmd.Args = arguments("ID...")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return flags.with(func(c *client.Client) error {
			all, err := each(cmd.Context(), ids, func(id string) (string, error) { return id, do(c, cmd.Context(), id) })
			return errors.Join(err, printIDs(cmd.OutOrStdout(), flags.format, all, done))
		})
	}
	flags.add(cmd)
	return cmd
}

func printIDs(w io.Writer, f format, ids []string, done string) error {
	if f == asJSON {
		return printJSON(w, ids)
	}
	for _, id := range ids {
		text := id
		if f == asTable {
			text = cell(id) + ": " + done
		}
		if err := printf(w, "%s\n", text); err != nil {
			return err
		}
	}
	return nil
}

func newNodesList() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:   "list",
		Short: "List the nodes with what they hold",
		Long: `List the nodes with what they hold. ENDED is how many tasks ended on a node since it started, in any way.

A node that is gone is listed for 15 minutes more, as lost or left, with what became of its tasks.`,
		Example: `  skalds nodes list`,
		Args:    arguments(),
	}, func(ctx context.Context, c *client.Client, _ []string) ([]client.Node, error) {
		return allNodes(ctx, c)
	}, func(w io.Writer, f format, nodes *[]client.Node) error {
		return printNodes(w, f, *nodes)
	})
}

// allNodes reads all nodes.
func allNodes(ctx context.Context, c *client.Client) ([]client.Node, error) {
	nodes := []client.Node{}
	for n, err := range c.AllNodes(ctx) {
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func newNodesShow() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:     "show ID",
		Short:   "Show a node with its tasks",
		Example: `  skalds nodes show node-1`,
		Args:    arguments("ID"),
	}, func(ctx context.Context, c *client.Client, args []string) (client.Node, error) {
		return c.Node(ctx, args[0])
	}, printNode)
}

func printNodes(w io.Writer, f format, nodes []client.Node) error {
	if f == asJSON {
		return printJSON(w, nodes)
	}
	t := columns(w)
	if f == asTable {
		if err := row(t, "ID", "STATE", "MODE", "RUNNING", "QUEUED", "SLOTS", "CPU", "MEMORY", "ENDED", "CLASSES", "LABELS", "UP"); err != nil {
			return err
		}
	}
	now := time.Now()
	for i := range nodes {
		n := &nodes[i]
		if f == asName && n.Gone != nil {
			continue // other commands can do nothing with it
		}
		cells := []any{n.ID}
		switch {
		case f != asTable:
		case n.Gone != nil:
			// What it held and used is no more; the text needs the room of all columns that follow.
			cells = append(cells, n.State, goneText(n.Gone, now))
		default:
			cells = append(cells, n.State, n.Mode, n.Running, n.Queued, fmt.Sprintf("%d/%d", n.SlotsRunning, n.Capacity),
				cpuText(n, 2, "/", ""), memoryText(n, "/"), n.Finished, strings.Join(classTexts(n, "%s %d/%d"), ","), labelText(n.Labels), age(n.StartedAt, now))
		}
		if err := row(t, cells...); err != nil {
			return err
		}
	}
	return flush(t)
}

// howGone says how a node went, by client.GoneNode.How.
var howGone = map[string]string{"replaced": "its id was taken over", "evicted": "it started nothing of what it was sent"}

// goneText says when a node went, and what became of its tasks.
func goneText(g *client.GoneNode, now time.Time) string {
	text := age(g.At, now) + " ago"
	if how := howGone[g.How]; how != "" {
		text += ", because " + how
	}
	return text + fmt.Sprintf("; of its tasks %s went back to waiting, %s ended, %s are still to be taken back",
		thousands(int64(g.Reassigned)), thousands(int64(g.Ended)), thousands(int64(g.Waiting)))
}

func labelText(labels map[string]string) string {
	list := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, ",")
}

// classTexts are the node's classes, those that have a capacity of their own with what they take of it.
func classTexts(n *client.Node, limited string) []string {
	list := make([]string, len(n.Classes))
	for i, class := range n.Classes {
		list[i] = class
		if most, ok := n.CapacityByClass[class]; ok {
			list[i] = fmt.Sprintf(limited, class, n.RunningByClass[class], most)
		}
	}
	return list
}

// cpuText is how many cores the process uses, of those that it may if it says that.
func cpuText(n *client.Node, digits int, of, unit string) string {
	text := strconv.FormatFloat(n.CPU, 'f', digits, 64)
	if n.CPUs > 0 {
		text += of + strconv.Itoa(n.CPUs)
	}
	return text + unit
}

// memoryText is cpuText for memory.
func memoryText(n *client.Node, of string) string {
	text := strconv.FormatInt(n.Memory>>20, 10)
	if n.MemoryTotal > 0 {
		text += of + strconv.FormatInt(n.MemoryTotal>>20, 10)
	}
	return text + " MiB"
}

func printNode(w io.Writer, f format, n *client.Node) error {
	switch f {
	case asJSON:
		return printJSON(w, n)
	case asName:
		return printf(w, "%s\n", n.ID)
	case asTable:
	}
	p := newPairs(w)
	p.add("ID", n.ID)
	p.add("State", string(n.State))
	p.add("Incarnation", n.Incarnation)
	if n.Gone != nil {
		now := time.Now()
		p.add("Gone", goneText(n.Gone, now))
		if n.Gone.LastSeen > 0 {
			p.add("Last seen", age(n.Gone.LastSeen, now)+" ago")
		}
		return p.flush()
	}
	p.add("Mode", n.Mode)
	p.add("Up", age(n.StartedAt, time.Now()))
	p.add("Tasks", fmt.Sprintf("%d running, %d queued", n.Running, n.Queued))
	p.add("Slots", fmt.Sprintf("%d taken, %d queued; room for %d, and %d queued", n.SlotsRunning, n.SlotsQueued, n.Capacity, n.Prefetch))
	p.add("Since its start", fmt.Sprintf("%s received, %s ended", thousands(n.Received), thousands(n.Finished)))
	p.add("Classes", strings.Join(classTexts(n, "%s (%d of %d slots)"), ", "))
	p.addIf("Labels", labelText(n.Labels))
	p.add("Partition", strconv.Itoa(n.Partition))
	p.addIf("Address", n.Address)
	p.add("Version", n.Version)
	p.add("CPU", cpuText(n, 3, " of ", " cores"))
	p.add("Memory", memoryText(n, " of "))
	for i, t := range n.Tasks {
		name := ""
		if i == 0 {
			name = "Holds"
		}
		p.add(name, fmt.Sprintf("%s (attempt %d, %s)", t.ID, t.Attempt, t.State))
	}
	return p.flush()
}
