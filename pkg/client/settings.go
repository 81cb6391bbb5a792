package client

import (
	"context"
	"net/http"
	"net/url"
)

// Scope is what a pause is of: a class, a namespace, or, with neither, the dispatcher.
type Scope struct {
	ClassName string  `json:"className,omitempty"`
	Namespace *string `json:"namespace,omitempty"` // empty is that of tasks without one
}

// PauseDispatch has nothing of the scope begin any more, until ResumeDispatch. What runs goes on.
func (c *Client) PauseDispatch(ctx context.Context, s Scope) (Settings, error) {
	return c.change(ctx, http.MethodPost, "/api/system/dispatcher/pause", s)
}

// ResumeDispatch ends a pause.
func (c *Client) ResumeDispatch(ctx context.Context, s Scope) (Settings, error) {
	return c.change(ctx, http.MethodPost, "/api/system/dispatcher/resume", s)
}

// Limits reads which limits and pauses were set at run time.
func (c *Client) Limits(ctx context.Context) (Settings, error) {
	return c.change(ctx, http.MethodGet, "/api/system/limits", nil)
}

// LimitKind says what a limit is of.
type LimitKind string

// The kinds of limits. The first three are rates, the others numbers of tasks on nodes at once.
const (
	LimitRate      LimitKind = "rate" // of the whole dispatcher; it has no name
	LimitClass     LimitKind = "classes"
	LimitNode      LimitKind = "nodes"
	LimitNamespace LimitKind = "namespaces"
	LimitPool      LimitKind = "pools"
)

func (k LimitKind) path(name string) string {
	switch k {
	case LimitRate:
		return "/api/system/limits/rate"
	case LimitPool:
		return "/api/pools/" + url.PathEscape(name)
	case LimitClass, LimitNode, LimitNamespace:
	}
	if k == LimitNamespace && name == "" {
		name = "-"
	}
	return "/api/system/limits/" + string(k) + "/" + url.PathEscape(name)
}

// SetRate sets a rate: of the dispatcher, of a class or of a node; the name * is that of each class or node without an
// own one.
func (c *Client) SetRate(ctx context.Context, kind LimitKind, name string, r Rate) error {
	_, err := c.change(ctx, http.MethodPut, kind.path(name), r)
	return err
}

// SetTaskLimit sets how many tasks of a namespace or of a pool may be on nodes at once.
func (c *Client) SetTaskLimit(ctx context.Context, kind LimitKind, name string, limit int) error {
	return c.do(ctx, http.MethodPut, kind.path(name), nil, struct {
		Limit int `json:"limit"`
	}{limit}, nil)
}

// RemoveLimit removes a limit of any kind. One that is not there is an [*Error] with status 404.
func (c *Client) RemoveLimit(ctx context.Context, kind LimitKind, name string) error {
	return c.do(ctx, http.MethodDelete, kind.path(name), nil, nil, nil)
}

// Pools lists the pools.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	var out struct {
		Items []Pool `json:"items"`
	}
	err := c.do(ctx, http.MethodGet, "/api/pools", nil, nil, &out)
	return out.Items, err
}

func (c *Client) change(ctx context.Context, method, path string, body any) (Settings, error) {
	var out Settings
	err := c.do(ctx, method, path, nil, body, &out)
	return out, err
}
