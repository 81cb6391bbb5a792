package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

func newLimit() *cobra.Command {
	return group(&cobra.Command{
		Use:   "limit",
		Short: "See and change limits: rates, tasks of a namespace, pools",
	}, newLimitList(), newLimitSet(), newLimitRemove())
}

const limitKinds = `KIND is what is limited:

  rate       tasks that start a second; of all, or, with --class or --node, of one class or node ('*': of each that has no own rate)
  namespace  tasks of --namespace that are on nodes at once
  pool       tasks of --pool that are on nodes at once`

// limitFlags say which limit is meant.
type limitFlags struct {
	class, node, namespace, pool string
}

func (l *limitFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.class, "class", "", "the class of a rate")
	cmd.Flags().StringVar(&l.node, "node", "", "the node of a rate")
	cmd.Flags().StringVar(&l.namespace, "namespace", "", "the namespace; empty is that of tasks without one")
	cmd.Flags().StringVar(&l.pool, "pool", "", "the pool")
}

// kind returns which limit the flags name.
func (l *limitFlags) kind(cmd *cobra.Command, word string) (client.LimitKind, string, error) {
	allowed := map[string][]string{"rate": {"class", "node"}, "namespace": {"namespace"}, "pool": {"pool"}}[word]
	if allowed == nil {
		return "", "", usage(cmd, "KIND is %q: must be rate, namespace or pool", word)
	}
	for _, flag := range []string{"class", "node", "namespace", "pool"} {
		if cmd.Flags().Changed(flag) && !slices.Contains(allowed, flag) {
			return "", "", usage(cmd, "--%s says nothing about a limit of the kind %s", flag, word)
		}
		if value, err := cmd.Flags().GetString(flag); err == nil && value == "" && flag != "namespace" && cmd.Flags().Changed(flag) {
			return "", "", usage(cmd, "--%s is empty: say which, or leave it out", flag)
		}
	}
	switch {
	case word == "namespace":
		return client.LimitNamespace, l.namespace, nil
	case word == "pool" && l.pool == "":
		return "", "", usage(cmd, "say which pool: --pool NAME")
	case word == "pool":
		return client.LimitPool, l.pool, nil
	case l.class != "" && l.node != "":
		return "", "", usage(cmd, "a rate is of a class or of a node: give one of --class and --node")
	case l.class != "":
		return client.LimitClass, l.class, nil
	case l.node != "":
		return client.LimitNode, l.node, nil
	}
	return client.LimitRate, "", nil
}

func newLimitSet() *cobra.Command {
	var flags apiFlags
	var of limitFlags
	var burst int
	cmd := &cobra.Command{
		Use:   "set KIND N",
		Short: "Set a limit, from the next round on",
		Long:  "Set a limit for all controllers; it outlives restarts. " + limitKinds,
		Example: `  skalds limit set rate 50
  skalds limit set rate 2 --class mail --burst 10
  skalds limit set namespace 100 --namespace shop
  skalds limit set pool 4 --pool gpu`,
		Args: arguments("KIND", "N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := of.kind(cmd, args[0])
			if err != nil {
				return err
			}
			n, err := strconv.ParseFloat(args[1], 64)
			rate := kind == client.LimitRate || kind == client.LimitClass || kind == client.LimitNode
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 || !rate && n != math.Trunc(n) {
				return usage(cmd, "N is %q: must be a number of 0 or more, a whole one but for rates", args[1])
			}
			if burst != 0 && !rate {
				return usage(cmd, "--burst is for rates")
			}
			return changeLimits(&flags, func(ctx context.Context, c *client.Client) error {
				if rate {
					return c.SetRate(ctx, kind, name, client.Rate{PerSecond: n, Burst: burst})
				}
				return c.SetTaskLimit(ctx, kind, name, int(n))
			})
		},
	}
	of.add(cmd)
	cmd.Flags().IntVar(&burst, "burst", 0, "tasks that may start at once after a pause (default: N, at least 1)")
	flags.add(cmd)
	return cmd
}

func newLimitRemove() *cobra.Command {
	var flags apiFlags
	var of limitFlags
	cmd := &cobra.Command{
		Use:     "remove KIND",
		Short:   "Remove a limit",
		Long:    "Remove a limit. Tasks of a pool that is removed wait until it is made again. " + limitKinds,
		Example: `  skalds limit remove rate --class mail`,
		Args:    arguments("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := of.kind(cmd, args[0])
			if err != nil {
				return err
			}
			return changeLimits(&flags, func(ctx context.Context, c *client.Client) error { return c.RemoveLimit(ctx, kind, name) })
		},
	}
	of.add(cmd)
	flags.add(cmd)
	return cmd
}

func newLimitList() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the limits and the pauses",
		Example: `  skalds limit list`,
		Args:    arguments(),
	}, func(ctx context.Context, c *client.Client, _ []string) (client.Settings, error) { return c.Limits(ctx) }, printSettings)
}

// changeLimits makes a change, and shows the limits as they are then.
func changeLimits(flags *apiFlags, change func(context.Context, *client.Client) error) error {
	return ask(flags, func(ctx context.Context, c *client.Client) (client.Settings, error) {
		if err := change(ctx, c); err != nil {
			return client.Settings{}, err
		}
		return c.Limits(ctx)
	}, printSettings)
}

func printSettings(w io.Writer, f format, s *client.Settings) error {
	if f == asJSON {
		return printJSON(w, s)
	}
	lines := settingsLines(s)
	if len(lines) == 0 {
		return printf(w, "No limits and no pauses.\n")
	}
	if f == asName {
		for _, l := range lines {
			if err := printf(w, "%s\n", cell(l[0])); err != nil {
				return err
			}
		}
		return nil
	}
	c := columns(w)
	if err := row(c, "WHAT", "LIMIT"); err != nil {
		return err
	}
	for _, l := range lines {
		if err := row(c, l[0], l[1]); err != nil {
			return err
		}
	}
	return flush(c)
}

// anyName is the name of a rate that is that of each class or node without one of its own.
const anyName = "*"

// settingsLines is each limit and pause with what it says.
func settingsLines(s *client.Settings) [][2]string {
	var lines [][2]string
	add := func(what, limit string) { lines = append(lines, [2]string{what, limit}) }
	rate := func(name string, r client.Rate) string {
		text := fmt.Sprintf("%v start a second, %d at once", r.PerSecond, r.Burst)
		if name == anyName {
			text += "; each that has no own rate"
		}
		return text
	}
	namespace := func(name string) string { return "namespace " + strconv.Quote(name) }
	if s.Paused {
		add("dispatcher", "paused")
	}
	for _, class := range s.PausedClasses {
		add("class "+class, "paused")
	}
	for _, name := range s.PausedNamespaces {
		add(namespace(name), "paused")
	}
	if s.Rate != nil {
		add("all tasks", rate("", *s.Rate))
	}
	for _, name := range slices.Sorted(maps.Keys(s.ClassRates)) {
		add("class "+name, rate(name, s.ClassRates[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.NodeRates)) {
		add("node "+name, rate(name, s.NodeRates[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.NamespaceLimits)) {
		add(namespace(name), onNodes(s.NamespaceLimits[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		add("pool "+name, onNodes(s.Pools[name]))
	}
	return lines
}

func onNodes(n int) string { return strconv.Itoa(n) + " on nodes at once" }
