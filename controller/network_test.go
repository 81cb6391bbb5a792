package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/skalds-go/skalds/pkg/client"
)

// piped is a listener whose connections are pipes.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPiped() *piped { return &piped{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *piped) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000} }

func (p *piped) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial reaches a controller by the port of its address.
func (s *system) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	door := s.doors[n-firstPort]
	s.mu.Unlock()
	return door.dial(ctx, network, address)
}

// firstPort is that of the controller that was started first; each later one has the next.
const firstPort = 8000

// wires carries requests to controllers.
func (s *system) wires() http.RoundTripper {
	return &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
}

// client gives a client of the i-th controller.
func (s *system) client(i int) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: fmt.Sprint("http://127.0.0.1:", firstPort+i), HTTP: &http.Client{Transport: s.wires()}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// ask asks each controller that runs for a page of its API, in the order in which they were started.
func (s *system) ask(path string) []string {
	s.t.Helper()
	var answers []string
	for _, p := range s.doors {
		c := http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
		res, err := c.Get("http://127.0.0.1:8000" + path)
		if errors.Is(err, net.ErrClosed) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %d %s %v", path, res.StatusCode, body, err)
		}
		answers = append(answers, string(body))
	}
	return answers
}
