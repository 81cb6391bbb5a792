package fleet

import (
	"slices"
	"time"
)

// A node that sends heartbeats but starts nothing of what it is sent is unresponsive. It is cordoned: it takes no new
// work for a time, which doubles every time until the node reports something.
const (
	// unresponsiveResends is how often claims may be resent in vain: three claims once each, or one claim three times.
	unresponsiveResends = 3
	minCordon           = time.Minute
	maxCordon           = 10 * time.Minute
	cordonDoublings     = 5 // that lead from the one to the other
)

// Cordon is why a node takes no new work, since when, and until when.
type Cordon struct {
	Reason string
	Since  time.Duration
	Until  time.Duration
	times  int // that it was cordoned before, without a report in between
}

// Unresponsive returns incarnations that send heartbeats, but to which claims were resent too often in vain, without a
// report of any kind in between. Only claims that are due again count: those that were sent longer than after ago. It
// returns at most limit of them.
func (a *Availability) Unresponsive(now, after time.Duration, limit int) []Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []Key
	for k, m := range a.live.members {
		if !m.gone && m.present && now-m.seenAt <= a.cfg.StaleAfter && resentInVain(m, now, after) >= unresponsiveResends {
			list = append(list, k)
		}
	}
	for node, c := range a.cordons {
		if now-c.Until > maxCordon { // it got no claim since then: it may have left for good
			delete(a.cordons, node)
		}
	}
	slices.SortFunc(list, compareKeys)
	return list[:min(len(list), limit)]
}

// resentInVain counts how often the claims of a member that are due again were resent since it last reported anything.
func resentInVain(m *member, now, after time.Duration) int {
	n := 0
	for _, e := range m.claims {
		if e.due(now, after) && e.resentAt == m.reports {
			n += e.resends
		}
	}
	return n
}

// Responded notes that an incarnation holds what it was sent although it has not reported it yet.
func (a *Availability) Responded(k Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.live.members[k]; ok {
		m.reports++
	}
}

// Cordon keeps new work from a node for a time, and returns that time.
func (a *Availability) Cordon(k Key, reason string, now time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	times := 0
	if before, ok := a.cordons[k.Node]; ok {
		times = min(before.times+1, cordonDoublings)
	}
	wait := min(minCordon<<times, maxCordon)
	a.live.touchNode(k.Node)
	a.cordons[k.Node] = Cordon{Reason: reason, Since: now, Until: now + wait, times: times}
	if m, ok := a.live.members[k]; ok {
		m.reports++ // what it leaves unanswered from now on is counted anew
	}
	return wait
}

// AllCordoned returns the nodes that are cordoned now, by their ids.
func (a *Availability) AllCordoned(now time.Duration) map[string]Cordon {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]Cordon)
	for node, c := range a.cordons {
		if now < c.Until {
			all[node] = c
		}
	}
	return all
}

// cordoned reports whether a node is cordoned now, and why.
func (a *Availability) cordoned(node string, now time.Duration) (Cordon, bool) {
	c, ok := a.cordons[node]
	return c, ok && now < c.Until
}

// reported notes that an incarnation has reported something. That ends its cordon.
func (a *Availability) reported(k Key) {
	if m, ok := a.live.members[k]; ok {
		m.reports++
	}
	if _, ok := a.cordons[k.Node]; ok {
		delete(a.cordons, k.Node)
		a.live.touchNode(k.Node)
	}
}

// The pauses of a node to which nothing could be sent. They double from the first to the last, which is short: Kafka
// may be down for all nodes, and all should go on soon after its return.
const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// Unreachable notes that nothing could be sent to an incarnation. It gets no new work before its next heartbeat, nor
// before a pause is over that doubles every time.
func (a *Availability) Unreachable(k Key, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.live.members[k]; ok {
		m.refused = true
		m.backoff = min(max(2*m.backoff, minBackoff), maxBackoff)
		m.backoffUntil = now + m.backoff
		a.live.touch(m)
	}
}

// Reachable notes that something could be sent to an incarnation. The next pause is the shortest again.
func (a *Availability) Reachable(k Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.live.members[k]; ok {
		m.backoff = 0
	}
}
