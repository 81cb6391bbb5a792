package main

import (
	"context"
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

func newStrategy() *cobra.Command {
	return group(&cobra.Command{
		Use:   "strategy",
		Short: "See and change how nodes are chosen for tasks",
	}, newStrategyGet(), newStrategySet())
}

func newStrategyGet() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:     "get",
		Short:   "Show the strategy, and what the dispatcher does",
		Example: `  skalds strategy get -o name`,
		Args:    arguments(),
	}, func(ctx context.Context, c *client.Client, _ []string) (client.Dispatcher, error) {
		return c.Dispatcher(ctx)
	}, printDispatcherNow)
}

func newStrategySet() *cobra.Command {
	return askCommand(&cobra.Command{
		Use:   "set STRATEGY",
		Short: "Change the strategy, from the next round on",
		Long: `Change the strategy of all controllers, from the next round on; it outlives restarts.

LEAST_TASKS takes the node with the most room, ROUND_ROBIN one after the other, RANDOM any, POWER_OF_TWO the better of any two, LEAST_LOAD the one
whose machine has the most cpu and memory left, BINPACK the fullest that has room, SPREAD one of the value of a label with the fewest tasks (zone; or
SPREAD:rack), STICKY the one that had tasks of the same stickyKey. IDLE| before any of them takes idle nodes first.`,
		Example: `  skalds strategy set ROUND_ROBIN`,
		Args:    arguments("STRATEGY"),
	}, func(ctx context.Context, c *client.Client, args []string) (client.Dispatcher, error) {
		return c.SetStrategy(ctx, args[0])
	}, printDispatcherNow)
}

func printDispatcherNow(w io.Writer, f format, d *client.Dispatcher) error {
	return printDispatcher(w, f, d, time.Now())
}

func printDispatcher(w io.Writer, f format, d *client.Dispatcher, now time.Time) error {
	switch f {
	case asJSON:
		return printJSON(w, d)
	case asName:
		return printf(w, "%s\n", d.Strategy)
	case asTable:
	}
	p := newPairs(w)
	p.add("Strategy", d.Strategy)
	p.add("Leader", fmt.Sprintf("%s, term %d", cell(d.Leader.Address), d.Leader.Term))
	p.add("Interval", human(time.Duration(d.IntervalMs)*time.Millisecond))
	if d.LeaderError != "" {
		p.add("Rounds", "not known: "+d.LeaderError)
		return p.flush()
	}
	p.add("Nodes", strconv.Itoa(d.Nodes))
	rounds := thousands(d.Rounds)
	if d.LastRoundAt > 0 {
		rounds += ", the last " + age(d.LastRoundAt, now) + " ago"
	}
	p.add("Rounds", rounds)
	placed := thousands(d.Placed)
	if d.Failed+d.Lost > 0 {
		placed += fmt.Sprintf("; %s could not be published, %s lost to other changes", thousands(d.Failed), thousands(d.Lost))
	}
	p.add("Placed", placed)
	last := &d.LastRound
	p.add("Last round", fmt.Sprintf("%d placed, %d not published, in %s", last.Placed, last.Failed, human(time.Duration(last.TookMs)*time.Millisecond)))
	p.add("Sent, not started", unstarted(&d.Throttle))
	if most := d.Throttle.MaxBacklog; most > 0 {
		p.add("Backlog", fmt.Sprintf("submits are refused when %s tasks wait", thousands(int64(most))))
	}
	if d.Settings != nil {
		for _, l := range settingsLines(d.Settings) {
			p.add("Limit", l[0]+": "+l[1])
		}
	}
	var waiting []string
	for _, reason := range slices.Sorted(maps.Keys(d.Waiting)) {
		waiting = append(waiting, fmt.Sprintf("%s %d", reason, d.Waiting[reason]))
	}
	p.addIf("Queues", strings.Join(waiting, ", "))
	return p.flush()
}

// unstarted says how far the dispatcher is from sending nothing more.
func unstarted(t *client.Throttle) string {
	text := thousands(int64(t.Unstarted))
	if t.MaxPending > 0 {
		text += " of at most " + thousands(int64(t.MaxPending))
	}
	if t.Step > 0 {
		text += fmt.Sprintf("; rounds are slowed down (step %d of 5)", t.Step)
	}
	return text
}
