package api

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
)

const (
	// maxNodesWithTasks is how many nodes a page may have to show the tasks of each, and nodeReads how many of them are
	// read at once.
	maxNodesWithTasks = 100
	nodeReads         = 8
)

type nodesInput struct {
	Page     int    `query:"page" minimum:"1" maximum:"1000000" doc:"Number of the page, from 1. Not with a cursor."`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"10000" default:"100" doc:"Nodes in a page. currentTasks is read only for up to 100."`
	Cursor   string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before: only nodes with a greater id."`
}

type nodesOutput struct {
	Body client.NodePage
}

type nodeInput struct {
	ID string `path:"id" maxLength:"1024" doc:"Id of the node."`
}

type nodeOutput struct {
	Body client.Node
}

func (s nodeAPI) registerNodes(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-nodes", Method: http.MethodGet, Path: "/api/skalds", Tags: []string{"nodes"},
		Summary: "List the nodes, in the order of their ids",
		Errors:  []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
	}, bounded(s.listNodes))
	huma.Register(api, huma.Operation{
		OperationID: "get-node", Method: http.MethodGet, Path: "/api/skalds/{id}", Tags: []string{"nodes"},
		Summary: "Read a node with its tasks",
		Errors:  []int{http.StatusNotFound, http.StatusServiceUnavailable},
	}, bounded(s.getNode))
	for _, d := range []struct {
		id, path, summary, description string
		draining                       bool
	}{
		{
			"drain-node", "drain", "Drain a node",
			"It gets no new work, returns what it has not started and what is paused, finishes what runs, and stays registered until it is stopped. " +
				"That holds for the node's id, also over restarts, until it is undone by undrain.", true,
		},
		{"undrain-node", "undrain", "Let a drained node take work again", "One that stops by itself goes on to stop.", false},
	} {
		huma.Register(api, huma.Operation{
			OperationID: d.id, Method: http.MethodPost, Path: "/api/skalds/{id}/" + d.path, Tags: []string{"nodes"},
			Summary: d.summary, Description: d.description + " The answer comes once that is stored; the node's state shows when it is carried out.",
			DefaultStatus: http.StatusNoContent,
			Errors:        []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
		}, bounded(func(ctx context.Context, in *nodeInput) (*struct{}, error) {
			return nil, s.drain(ctx, in.ID, d.draining)
		}))
	}
}

// drain stores that a node is drained, or not any more. What is drained must be there, so that nobody waits for the
// drain of a misspelt id; what is not may be gone.
func (s nodeAPI) drain(ctx context.Context, id string, draining bool) error {
	if draining {
		_, ok, err := s.Nodes.Node(ctx, id)
		if err != nil {
			return s.registryFailed(ctx, "to read a node", err)
		}
		if !ok {
			return notFound("node", id)
		}
	}
	err := s.Backend.SetDraining(ctx, id, draining)
	if errors.Is(err, store.ErrTooMany) {
		return invalid("path.id", shorten(id), "cannot be drained: %d nodes are; undrain those that are gone", store.MaxDraining)
	}
	if err != nil {
		return s.storeFailed(ctx, "to drain a node", err)
	}
	return nil
}

func (s nodeAPI) listNodes(ctx context.Context, in *nodesInput) (*nodesOutput, error) {
	if in.Cursor != "" && in.Page != 0 {
		return nil, invalid("query.page", in.Page, "must not be given with a cursor")
	}
	snapshot, err := s.Nodes.Snapshot(ctx)
	if err != nil {
		return nil, s.registryFailed(ctx, "to list nodes", err)
	}
	now := s.now()
	s.beats.see(snapshot.Nodes, now)
	known := s.known(ctx)
	nodes := known.withGone(snapshot.Nodes)
	first, _ := slices.BinarySearchFunc(nodes, in.Cursor+"\x00", func(n shown, id string) int { return cmp.Compare(n.id, id) })
	if in.Cursor == "" {
		first = min((max(in.Page, 1)-1)*in.PageSize, len(nodes))
	}
	last := min(first+in.PageSize, len(nodes))
	page := client.NodePage{Items: make([]client.Node, 0, last-first), Total: len(nodes), Page: max(in.Page, 1), PageSize: in.PageSize,
		Incomplete: known.missing}
	if in.Cursor != "" {
		page.Page = first/in.PageSize + 1
	}
	for i := first; i < last; i++ {
		if g := nodes[i].gone; g != nil {
			page.Items = append(page.Items, goneNode(g))
			continue
		}
		page.Items = append(page.Items, s.nodeOf(nodes[i].node, &known, now))
	}
	if last < len(nodes) {
		page.NextCursor = nodes[last-1].id
	}
	if len(page.Items) <= maxNodesWithTasks {
		if err := s.addTasks(ctx, page.Items); err != nil {
			return nil, err
		}
	}
	return &nodesOutput{Body: page}, nil
}

// addTasks reads the task list of each node. One that left meanwhile has none.
func (s nodeAPI) addTasks(ctx context.Context, nodes []client.Node) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeReads)
	for i := range nodes {
		if nodes[i].Gone != nil {
			continue
		}
		group.Go(func() error {
			n, _, err := s.Nodes.Node(groupCtx, nodes[i].ID)
			nodes[i].CurrentTasks = taskIDs(n.Tasks)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return s.registryFailed(ctx, "to read the tasks of nodes", err)
	}
	return nil
}

func (s nodeAPI) getNode(ctx context.Context, in *nodeInput) (*nodeOutput, error) {
	n, ok, err := s.Nodes.Node(ctx, in.ID)
	if err != nil {
		return nil, s.registryFailed(ctx, "to read a node", err)
	}
	known := s.known(ctx)
	if g := known.gone[in.ID]; !ok && g != nil {
		return &nodeOutput{Body: goneNode(g)}, nil
	}
	if !ok {
		return nil, notFound("node", in.ID)
	}
	out := s.nodeOf(&n, &known, s.now())
	out.CurrentTasks = taskIDs(n.Tasks)
	out.Tasks = slices.Clone(n.Tasks)
	for i := range out.Tasks {
		out.Tasks[i].State = cmp.Or(out.Tasks[i].State, "queued")
	}
	return &nodeOutput{Body: out}, nil
}

func (s nodeAPI) nodeOf(n *registry.Node, k *known, now int64) client.Node {
	beat := *n
	beat.Tasks, beat.CPU = nil, finite(n.CPU)
	beat.SlotsRunning, beat.SlotsQueued = n.Slots()
	if beat.Classes == nil {
		beat.Classes = []string{}
	}
	if beat.Labels == nil {
		beat.Labels = map[string]string{}
	}
	var cordon *client.Cordon
	if c, ok := k.cordoned[n.ID]; ok {
		cordon = &c
	}
	if k.draining[n.ID] && n.State == registry.Online {
		beat.State = registry.Draining // its heartbeats will say so as soon as it knows
	}
	return client.Node{
		Node: beat, Cordon: cordon, Invalid: registry.Validate(n, now),
		Type: n.Mode, Status: string(beat.State), LastHeartbeat: strconv.FormatInt(s.beats.seenAt(n, now), 10),
		SupportedTasks: beat.Classes, Heartbeat: n.Counter, TaskCount: n.Running + n.Queued,
	}
}

// finite returns 0 in place of what JSON cannot say: one node's numbers must not keep the others from being shown.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

func taskIDs(held []registry.HeldTask) []string {
	ids := make([]string, len(held))
	for i := range held {
		ids[i] = held[i].ID
	}
	return ids
}

// beatClock remembers when each node's present heartbeat was first seen here, since no clock of another machine is to
// be shown as ours. It holds the nodes of the last list and those that were asked for one by one since.
type beatClock struct {
	mu   sync.Mutex
	seen map[string]beat
}

type beat struct {
	incarnation string
	counter     int64
	at          int64 // epoch ms
}

// see takes the whole list, so that nodes that left are forgotten.
func (c *beatClock) see(nodes []registry.Node, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[string]beat, len(nodes))
	for i := range nodes {
		next[nodes[i].ID] = c.beatOf(&nodes[i], now)
	}
	c.seen = next
}

func (c *beatClock) seenAt(n *registry.Node, now int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.beatOf(n, now)
	if c.seen == nil {
		c.seen = make(map[string]beat)
	}
	if len(c.seen) < maxBeats {
		c.seen[n.ID] = b
	}
	return b.at
}

// maxBeats bounds what a beatClock remembers between two lists.
const maxBeats = 20_000

func (c *beatClock) beatOf(n *registry.Node, now int64) beat {
	if b, ok := c.seen[n.ID]; ok && b.incarnation == n.Incarnation && b.counter == n.Counter {
		return b
	}
	return beat{incarnation: n.Incarnation, counter: n.Counter, at: now}
}
