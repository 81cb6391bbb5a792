package main

import (
	"errors"
	"time"

	nodesession "github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/task"
)

// What a dependency that is away must not do, in seeds where nothing else goes wrong: cut a run off, take a task from
// its node, end a lease, or have a result not count. One thing may happen (docs/adr/0007): a node that Kafka does not
// reach and that runs nothing is put out of the registry, and what was sent to it in vain goes elsewhere.

// evicting is how old what a node is put out for may be: its list is that of its last heartbeat. What has begun since
// is cut off with it.
const evicting = 3 * time.Second

// evicts notes that a node is put out of the registry.
func (c *checker) evicts(incarnation string) {
	if _, known := c.evicted[incarnation]; !known {
		c.evicted[incarnation] = c.world.now
	}
}

// excused reports whether a run, or a claim without one, may end with its node's place in the registry.
func (c *checker) excused(incarnation string, began time.Duration) bool {
	at, evicted := c.evicted[incarnation]
	return evicted && began > at-evicting
}

// loses is called when a session has lost its lease.
func (c *checker) loses(s *session) {
	if !c.cfg.outages {
		return
	}
	if _, evicted := c.evicted[s.incarnation]; !evicted {
		c.violate("a dependency moved all that %s held: its lease is lost", s.incarnation)
	}
}

// cutOff checks a run that ends with an error, its context's end or its own.
func (c *checker) cutOff(r *taskRun, cause error) {
	if c.cfg.outages && errors.Is(cause, nodesession.ErrLeaseLost) && !c.excused(r.session.incarnation, r.started) {
		c.violate("a dependency moved %s: its run by claim %s was cut off", r.task, r.claim)
	}
}

// moved checks a change by which a task leaves its claim.
func (c *checker) moved(as role, before, after *task.Task) {
	if !c.cfg.outages || !before.Held() || after.Held() && after.ClaimID == before.ClaimID {
		return
	}
	r := c.claim(before.ClaimID)
	began := r.began
	if began == 0 {
		began = never
	}
	switch {
	case as == roleMonitor && !c.excused(before.Incarnation, began):
		c.violate("a dependency moved %s: claim %s was taken from %s", before.ID, before.ClaimID, before.Incarnation)
	case r.finished && after.LifecycleStatus != task.Finished && !c.excused(before.Incarnation, began):
		c.violate("a dependency moved %s: its run by claim %s ended well, and the %s made it %s", before.ID, before.ClaimID, as, after.LifecycleStatus)
	}
}
