package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// nodeCount is what a node counts since its start.
type nodeCount struct {
	incarnation string
	heartbeat   int64
	finished    int64
	held        int // running or queued
}

// nodeCounts are the counts of all nodes, by id.
type nodeCounts map[string]nodeCount

func (b *bench) readNodes(ctx context.Context) (nodeCounts, error) {
	counts := nodeCounts{}
	for n, err := range b.api.AllNodes(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read the nodes: %w", err)
		}
		if n.Gone != nil {
			continue
		}
		if n.Gone != nil {
			continue
		}
		counts[n.ID] = nodeCount{
			incarnation: n.Incarnation, heartbeat: n.Heartbeat, finished: n.Finished, held: n.Running + n.Queued,
		}
	}
	return counts, nil
}

// same reports whether these are the same nodes, none of which was restarted.
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

// idle reports whether every node has sent two heartbeats since other, so that the later one was made after that
// moment, and holds nothing any more.
func (n nodeCounts) idle(other nodeCounts) bool {
	for id, c := range n {
		if c.heartbeat < other[id].heartbeat+2 || c.held > 0 {
			return false
		}
	}
	return true
}

var errBusy = errors.New("the nodes hold tasks, or send no heartbeats: measure on an otherwise idle server")

// idleNodes waits until what the nodes say of themselves is up to date and they hold nothing.
func (b *bench) idleNodes(ctx context.Context) (nodeCounts, error) {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	over := time.NewTimer(settleTimeout)
	defer over.Stop()
	first, err := b.readNodes(ctx)
	if err == nil && len(first) == 0 {
		return nil, errors.New("there is no node: start one (skalds node), or give 'skalds dev' some (--nodes)")
	}
	for now := first; err == nil; now, err = b.readNodes(ctx) {
		if now.idle(first) {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.C:
			return nil, errBusy
		case <-tick.C:
		}
	}
	return nil, err
}
