// Package proxy stands between one process of a test and one service, and breaks the connection in the ways that
// networks do.
//
// Invariants: the address stays the same over all faults, so that a process needs no new configuration. Bytes are never
// lost or changed within a connection that lives: a fault ends a connection, holds it up, or leaves it alone.
package proxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mode is what the proxy does to connections.
type mode uint8

const (
	open    mode = iota // passes on
	stalled             // accepts, and passes nothing on
	cut                 // ends every connection at once
)

// Proxy is one. Its methods may be called from any goroutine.
type Proxy struct {
	target   string
	frames   framing
	listener net.Listener
	accepted atomic.Int64
	all      sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	delay   time.Duration
	changed chan struct{} // closed when the mode changes
	links   map[*link]struct{}
}

// New makes a proxy of the service at target (host:port). It ends with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	return start(t, target, nil)
}

// Kafka makes a proxy of the only broker of a cluster. Where the broker tells its address, target, the proxy tells its
// own, so that clients stay with it. Both are on 127.0.0.1, without TLS.
func Kafka(t testing.TB, target string) *Proxy {
	t.Helper()
	return start(t, target, func(own string) (framing, error) { return advertising(target, own) })
}

func start(t testing.TB, target string, frames func(own string) (framing, error)) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), links: map[*link]struct{}{}}
	if frames != nil {
		if p.frames, err = frames(p.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Addr is where the proxy listens, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Accepted is how many connections were made, also those that were refused.
func (p *Proxy) Accepted() int64 { return p.accepted.Load() }

// Cut ends all connections, and every new one at once. (It is reset rather than refused: the port stays ours.)
func (p *Proxy) Cut() { p.set(cut) }

// Stall lets all connections hang: nothing comes through, and new ones are accepted and never answered. What is on its
// way arrives after Restore, as with a network that heals.
func (p *Proxy) Stall() { p.set(stalled) }

// Delay has everything take that much longer, each way, without bound on how much is under way. Zero ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Drop ends all connections. New ones work.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Restore ends every fault.
func (p *Proxy) Restore() {
	p.Delay(0)
	p.set(open)
}

func (p *Proxy) set(m mode) {
	p.mu.Lock()
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if m == cut {
		p.Drop()
	}
}

func (p *Proxy) state() (m mode, delay time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.delay, p.changed
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of a client that has gone
		}
		p.accepted.Add(1)
		if l := p.link(conn); l != nil {
			p.all.Go(l.run)
		}
	}
}

// link takes a connection in, or ends it if the proxy is cut.
func (p *Proxy) link(client net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == cut {
		reset(client)
		return nil
	}
	l := &link{proxy: p, client: client, over: make(chan struct{})}
	p.links[l] = struct{}{}
	return l
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// reset closes a connection so that the other side sees an error at once, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
