package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
)

// nodeCount is what a node counts since its start.
type nodeCount struct {
	incarnation string
	beat        int64
	finished    int64
	held        int // running or queued
}

// nodeCounts are the counts of all nodes, by id.
type nodeCounts map[string]nodeCount

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

func (b *bench) readNodes(ctx context.Context) (nodeCounts, error) {
	nodes, err := allNodes(ctx, b.api)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	counts := make(nodeCounts, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		counts[n.ID] = nodeCount{incarnation: n.Incarnation, beat: n.Heartbeat, finished: n.Finished, held: n.Running + n.Queued}
	}
	return counts, nil
}

// same says whether these are the same nodes, none of which was restarted.
func (n nodeCounts) same(other nodeCounts) bool {
	if len(n) != len(other) {
		return false
	}
	for id, c := range n {
		if o, ok := other[id]; !ok || o.incarnation != c.incarnation {
			return false
		}
	}
	return true
}

// since is how many runs ended since other; a node that came meanwhile counts from its start.
func (n nodeCounts) since(other nodeCounts) int {
	sum := int64(0)
	for id, c := range n {
		sum += c.finished
		if o, ok := other[id]; ok && o.incarnation == c.incarnation {
			sum -= o.finished
		}
	}
	return int(sum)
}

// settled says whether every node has sent two heartbeats since other, so that the later one was made after that moment, and holds
// nothing any more.
func (n nodeCounts) settled(other nodeCounts) bool {
	for id, c := range n {
		if c.beat < other[id].beat+2 || c.held > 0 {
			return false
		}
	}
	return true
}

var errUnsettled = errors.New("the nodes hold tasks, or send no heartbeats: measure on an otherwise idle server")

// settledNodes waits until what the nodes say of themselves is up to date and they hold nothing.
func (b *bench) settledNodes(ctx context.Context) (nodeCounts, error) {
	tick := time.NewTicker(benchPoll)
	defer tick.Stop()
	over := time.NewTimer(settleTimeout)
	defer over.Stop()
	first, err := b.readNodes(ctx)
	if err == nil && len(first) == 0 {
		return nil, errors.New("there is no node: start one (skalds node), or give 'skalds dev' some (--nodes)")
	}
	for now := first; err == nil; now, err = b.readNodes(ctx) {
		if now.settled(first) {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.C:
			return nil, errUnsettled
		case <-tick.C:
		}
	}
	return nil, err
}
