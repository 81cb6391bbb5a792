package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
)

// nodePageSize is what AllNodes reads at once: the largest page in which the server lists each node's tasks.
const nodePageSize = 100

// Nodes reads one page of the nodes, in the order of their ids. pageSize is 1..10000, 0 = 100; cursor is the NextCursor
// of the page before.
func (c *Client) Nodes(ctx context.Context, pageSize int, cursor string) (NodePage, error) {
	query := url.Values{}
	setInt(query, "pageSize", pageSize)
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var out NodePage
	err := c.do(ctx, http.MethodGet, "/api/skalds", query, nil, &out)
	return out, err
}

// AllNodes goes through all nodes, page by page. It ends after the first error.
func (c *Client) AllNodes(ctx context.Context) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		for cursor := ""; ; {
			page, err := c.Nodes(ctx, nodePageSize, cursor)
			if err != nil {
				yield(Node{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i], nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				return
			}
		}
	}
}

// Node reads one node with its tasks. One that is not there is an [*Error] with status 404.
func (c *Client) Node(ctx context.Context, id string) (Node, error) {
	var out Node
	err := c.do(ctx, http.MethodGet, "/api/skalds/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}

// Fleet reads what the leader knows of nodes beyond their heartbeats: which are cordoned, and which are gone.
func (c *Client) Fleet(ctx context.Context) (Fleet, error) {
	var out Fleet
	err := c.do(ctx, http.MethodGet, "/api/system/fleet", nil, nil, &out)
	return out, err
}

// Drain has a node take no new work, return what it has not started and what is paused, and finish what runs. That
// holds for the id until Undrain. A node that is not there is an [*Error] with status 404.
func (c *Client) Drain(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/api/skalds/"+url.PathEscape(id)+"/drain", nil, nil, nil)
}

// Explain says why a task is where it is, or why it waits and what would help. One that does not exist is an [*Error]
// with status 404.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	var out Explanation
	err := c.do(ctx, http.MethodGet, taskPath(id)+"/explain", nil, nil, &out)
	return out, err
}

// Pending groups all tasks that wait by reason.
func (c *Client) Pending(ctx context.Context) (Pending, error) {
	var out Pending
	err := c.do(ctx, http.MethodGet, "/api/system/pending", nil, nil, &out)
	return out, err
}

// Undrain lets a drained node take work again.
func (c *Client) Undrain(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/api/skalds/"+url.PathEscape(id)+"/undrain", nil, nil, nil)
}

// Dispatcher says what the dispatcher does.
func (c *Client) Dispatcher(ctx context.Context) (Dispatcher, error) {
	var out Dispatcher
	err := c.do(ctx, http.MethodGet, "/api/system/dispatcher", nil, nil, &out)
	return out, err
}

// SetStrategy makes all controllers place by this strategy from the next round on. An unknown one is an [*Error] with
// status 422 that names what is allowed.
func (c *Client) SetStrategy(ctx context.Context, strategy string) (Dispatcher, error) {
	in := struct {
		Strategy string `json:"strategy"`
	}{strategy}
	var out Dispatcher
	err := c.do(ctx, http.MethodPut, "/api/system/dispatcher", nil, in, &out)
	return out, err
}

// Ready names what the controller still misses; nothing = it is ready.
func (c *Client) Ready(ctx context.Context) ([]NotReady, error) {
	a, err := c.send(ctx, http.MethodGet, "/readyz", nil, nil)
	if err != nil {
		return nil, err
	}
	var out Readiness
	if a.status == http.StatusOK || a.status == http.StatusServiceUnavailable && json.Unmarshal(a.text, &out) == nil && len(out.NotReady) > 0 {
		return out.NotReady, nil
	}
	return nil, errorOf(a)
}
