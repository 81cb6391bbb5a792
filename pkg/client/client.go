// Package client is the Go client of a controller's REST API, and the shapes of its requests and answers.
//
// What holds for every call:
//
//   - It ends with its context. Nothing is tried again behind the caller's back, but for [Client.Wait].
//   - An answer that says no is a [*Error]. A server that cannot be reached is [ErrUnreachable].
//   - No answer takes more memory than MaxResponse.
//
// A Client is safe for concurrent use.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// MaxResponse is how large an answer may be, in bytes.
const MaxResponse = 128 << 20

// Limits of the connection that New makes.
const (
	dialTimeout     = 5 * time.Second
	responseTimeout = 75 * time.Second // a wait of the server, and room
	idleTimeout     = 90 * time.Second
	maxIdle         = 64
)

// Config says which server to talk to.
type Config struct {
	// Server is its address: http://host:port, https://host:port, or host:port, which is http.
	Server string
	// Token is its API_TOKEN; empty = none.
	Token string
	// HTTP is what to send with. Default: a client of its own, which gives up a connection after 5 s and an answer that
	// does not begin after 75 s.
	HTTP *http.Client
}

// Client talks to one server.
type Client struct {
	base  string
	token string
	http  *http.Client
	limit int64 // MaxResponse, but in a test
}

// New makes a client. It does not connect. It returns an error if the address is not one.
func New(config Config) (*Client, error) {
	address := config.Server
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w; it must be http://host:port", config.Server, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server %q: not an address of a server; it must be http://host:port", config.Server)
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), token: config.Token, http: config.HTTP, limit: MaxResponse}
	if c.http == nil {
		c.http = &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: responseTimeout,
			IdleConnTimeout:       idleTimeout,
			MaxIdleConnsPerHost:   maxIdle,
		}}
	}
	return c, nil
}

// Close ends the connections that are idle. The client may be used again.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do makes one call: in, if any, is the body as JSON; a good answer goes to out, if any.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	a, err := c.send(ctx, method, path, query, in)
	switch {
	case err != nil:
		return err
	case a.status >= http.StatusMultipleChoices:
		return errorOf(a)
	case out == nil || a.status == http.StatusNoContent:
		return nil
	}
	if err := json.Unmarshal(a.text, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not what a Skalds controller says: %w", method, c.base+path, err)
	}
	return nil
}

// answer is what a server said, whatever it is.
type answer struct {
	status int
	header http.Header
	text   []byte
}

// send makes one call.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, in any) (answer, error) {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return answer{}, fmt.Errorf("encode the body of %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, target, err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, unreachable(ctx, c.base, err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(res.Body, c.limit+1))
	if err != nil {
		return answer{}, unreachable(ctx, c.base, err)
	}
	if int64(len(text)) > c.limit {
		return answer{}, fmt.Errorf("%s %s: the answer has more than %d bytes; ask for less", method, target, c.limit)
	}
	return answer{status: res.StatusCode, header: res.Header, text: text}, nil
}

// unreachable wraps an error of the connection. The end of the caller's own context is only that.
func unreachable(ctx context.Context, server string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", server, context.Cause(ctx))
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, server, err)
}
