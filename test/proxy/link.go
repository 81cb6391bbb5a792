package proxy

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	chunkSize   = 32 << 10
	chunks      = 256 // under way in one direction at most: the rest waits in the sender
)

// link is one connection through the proxy.
type link struct {
	proxy  *Proxy
	client net.Conn
	over   chan struct{} // closed when the link ends
	once   sync.Once

	mu     sync.Mutex
	server net.Conn // nil until it is made
}

// chunk is bytes and when they may go on.
type chunk struct {
	bytes []byte
	due   time.Time
}

// close ends the link.
func (l *link) close() {
	l.once.Do(func() {
		close(l.over)
		reset(l.client)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.server != nil {
			reset(l.server)
		}
	})
}

func (l *link) run() {
	defer l.proxy.forget(l)
	defer l.close()
	if !l.pass() {
		return
	}
	server, err := net.DialTimeout("tcp", l.proxy.target, dialTimeout)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	select {
	case <-l.over: // close may not have seen the server
		reset(server)
		return
	default:
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, l.client, plain) })
	back := l.proxy.frames
	if back == nil {
		back = plain
	}
	both.Go(func() { l.pump(l.client, server, back) })
	both.Wait()
}

// pump passes on what from says, until either side ends.
func (l *link) pump(to io.Writer, from io.Reader, frames framing) {
	defer l.close()
	queue := make(chan chunk, chunks)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		next := frames(from)
		for {
			bytes, err := next()
			if len(bytes) > 0 {
				_, delay, _ := l.proxy.state()
				select {
				case queue <- chunk{bytes, time.Now().Add(delay)}:
				case <-l.over:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	defer reader.Wait()
	defer l.close() // before the wait: it ends the reader
	for c := range queue {
		if !l.wait(c.due) || !l.pass() {
			return
		}
		if _, err := to.Write(c.bytes); err != nil {
			return
		}
	}
}

// wait waits for a time, and says whether the link lives.
func (l *link) wait(due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.over:
		return false
	}
}

// pass waits while the proxy is stalled, and says whether the link lives.
func (l *link) pass() bool {
	for {
		m, _, changed := l.proxy.state()
		if m != stalled {
			return m == open
		}
		select {
		case <-changed:
		case <-l.over:
			return false
		}
	}
}
