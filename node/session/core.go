package session

import (
	"context"
	"log/slog"
	"sync"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/loop"
)

// core is what the parts of a session share. Its lock guards the state of all of them. Methods whose name ends in
// Locked are called with it held.
type core struct {
	cfg    *config.Node
	id     string // of the node
	self   string // the session's incarnation
	log    *slog.Logger
	clock  clock.Clock
	driver loop.Driver
	base   context.Context // the values of Serve's context, without its end

	flushNow loop.Wake // something may have to be sent
	beatNow  loop.Wake // a heartbeat should not wait for its time
	lookNow  loop.Wake // the session's partitions may be gone
	idle     loop.Wake // the last handler has returned

	mu      sync.Mutex // guards what follows
	lease   lease
	terms   terms
	claims  *claims
	forGood bool // the node drains since it stops
}

// now returns the wall time in epoch ms.
func (c *core) now() int64 { return c.clock.Now().UnixMilli() }

// isTrusted reports whether the lease holds. If it has ended, so does all work.
func (c *core) isTrusted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease.holds()
}
