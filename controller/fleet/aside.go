package fleet

import (
	"slices"
	"time"
)

// A node that beats but starts nothing of what it is sent is set aside: it takes no new work for a time, which doubles with every time
// until it reports something.
const (
	// muteSends is how often claims may be sent again in vain: three claims once each, or one claim three times.
	muteSends  = 3
	firstAside = time.Minute
	longAside  = 10 * time.Minute
	asideSteps = 5 // doublings that lead from the one to the other
)

// Cordon is why a node takes no new work, from when, and until when it is tried no more.
type Cordon struct {
	Reason string
	Since  time.Duration
	Until  time.Duration
	times  int
}

// Resent notes that claims were sent again, and that this was done for certain.
func (f *Fleet) Resent(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		e, ok := f.claims[id]
		if !ok {
			continue
		}
		if m := f.members[e.Key]; e.said != m.said || e.again == 0 {
			e.said, e.again = m.said, 1
		} else {
			e.again++
		}
	}
}

// Unresponsive gives incarnations that beat, but to which claims were sent again too often in vain, without a report of any kind in between; at most
// limit of them.
func (f *Fleet) Unresponsive(now, after time.Duration, limit int) []Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Key
	for k, m := range f.members {
		if !m.gone && m.present && now-m.beatAt <= f.cfg.StaleAfter && inVain(m, now, after) >= muteSends {
			list = append(list, k)
		}
	}
	for node, a := range f.asides {
		if now-a.Until > longAside { // nobody tried it: it may have left for good
			delete(f.asides, node)
		}
	}
	slices.SortFunc(list, compareKeys)
	return list[:min(len(list), limit)]
}

// inVain counts how often the claims of a node were sent again since it reported anything, of those that are due once more.
func inVain(m *member, now, after time.Duration) int {
	n := 0
	for _, e := range m.claims {
		if e.phase == sent && !e.reported && e.said == m.said && now-e.sentAt >= after {
			n += e.again
		}
	}
	return n
}

// Unanswered gives the claims of an incarnation of which it has said nothing, and how many it has reported as begun.
func (f *Fleet) Unanswered(k Key) (claims []Claim, begun int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if !ok {
		return nil, 0
	}
	for _, e := range m.claims {
		if e.reported {
			begun++
		} else {
			claims = append(claims, e.Claim)
		}
	}
	slices.SortFunc(claims, byID)
	return claims, begun
}

// Responded notes that an incarnation holds what it is sent, though it has not reported it yet: it is not mute.
func (f *Fleet) Responded(k Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[k]; ok {
		m.said++
	}
}

// Cordon keeps new work from a node for a time. It gives the time.
func (f *Fleet) Cordon(k Key, reason string, now time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := 0
	if a, ok := f.asides[k.Node]; ok {
		times = min(a.times+1, asideSteps)
	}
	wait := min(firstAside<<times, longAside)
	f.touchNode(k.Node)
	f.asides[k.Node] = Cordon{Reason: reason, Since: now, Until: now + wait, times: times}
	if m, ok := f.members[k]; ok {
		m.said++ // what it leaves unanswered from now on is counted anew
	}
	return wait
}

// Evicted notes that an incarnation was put out of the registry: it is confirmed no more, so that its trust ends. Should a later snapshot show
// it all the same, it is like any other again.
func (f *Fleet) Evicted(k Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[k]; ok {
		m.evicted = true
		f.touch(m)
	}
}

// Cordoned says whether a node is set aside now, and why.
func (f *Fleet) Cordoned(node string, now time.Duration) (Cordon, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.asides[node]
	return a, ok && now < a.Until
}

// spoke notes that an incarnation has reported something: it is not mute, and need not be aside.
func (f *Fleet) spoke(k Key) {
	if m, ok := f.members[k]; ok {
		m.said++
	}
	if _, aside := f.asides[k.Node]; aside {
		delete(f.asides, k.Node)
		f.touchNode(k.Node)
	}
}
