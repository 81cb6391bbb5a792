package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
)

type fleetOutput struct {
	Body client.Fleet
}

func (s nodeAPI) registerFleet(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-fleet", Method: http.MethodGet, Path: "/api/system/fleet", Tags: []string{"system"},
		Summary:     "Say which nodes are cordoned, and which are gone",
		Description: "What the leader knows of nodes beyond their heartbeats. The list of nodes holds it, too.",
		Errors:      []int{http.StatusServiceUnavailable},
	}, bounded(func(ctx context.Context, _ *struct{}) (*fleetOutput, error) {
		f, err := s.Backend.Fleet(ctx)
		if err != nil {
			return nil, s.leaderFailed(ctx, "to read what the leader knows of nodes", err)
		}
		return &fleetOutput{Body: f}, nil
	}))
}

// known is what the leader knows of nodes beyond their heartbeats, if it can be asked.
type known struct {
	cordoned map[string]client.Cordon
	draining map[string]bool             // nodes that people drain
	gone     map[string]*client.GoneNode // the latest incarnation of each id
	missing  string                      // why it is not known
}

// knownTimeout is how long a list of nodes waits for what the leader knows of them.
const knownTimeout = 2 * time.Second

// known asks the leader. Nodes are shown without it, too: their heartbeats are in the registry.
func (s nodeAPI) known(ctx context.Context) known {
	asking, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	f, err := s.Backend.Fleet(asking)
	if err != nil {
		s.Log.WarnContext(ctx, "api: nodes are shown without what only the leader knows of them", "error", err)
		return known{missing: err.Error()}
	}
	k := known{cordoned: f.Cordoned, draining: make(map[string]bool, len(f.Draining)), gone: make(map[string]*client.GoneNode, len(f.Gone))}
	for _, id := range f.Draining {
		k.draining[id] = true
	}
	for i := range f.Gone {
		if g := &f.Gone[i]; k.gone[g.ID] == nil { // the last is the first
			k.gone[g.ID] = g
		}
	}
	return k
}

// states of nodes that are gone.
const (
	stateLost = "lost"
	stateLeft = "left"
)

// goneNode shows a node that is gone like one that is there.
func goneNode(g *client.GoneNode) client.Node {
	state := stateLost
	if g.How == stateLeft {
		state = stateLeft
	}
	n := client.Node{Gone: g, Status: state, CurrentTasks: []string{}, SupportedTasks: []string{}}
	n.ID, n.Incarnation, n.State = g.ID, g.Incarnation, registry.State(state)
	n.Classes, n.Labels = []string{}, map[string]string{}
	return n
}

// withGone adds those that are gone to the nodes that are there, in the order of their ids.
func (k *known) withGone(there []registry.Node) []shown {
	all := make([]shown, 0, len(there)+len(k.gone))
	ids := make(map[string]struct{}, len(there))
	for i := range there {
		ids[there[i].ID] = struct{}{}
		all = append(all, shown{id: there[i].ID, node: &there[i]})
	}
	for id, g := range k.gone {
		if _, back := ids[id]; !back {
			all = append(all, shown{id: id, gone: g})
		}
	}
	slices.SortFunc(all, func(a, b shown) int { return cmp.Compare(a.id, b.id) })
	return all
}

// shown is a node of a list: one that is there, or one that is gone.
type shown struct {
	id   string
	node *registry.Node
	gone *client.GoneNode
}
