package fleet

import (
	"slices"
	"time"
)

// The fleet remembers nodes that are gone for GoneFor, at most MaxGone of them; the oldest make way.
const (
	GoneFor = 15 * time.Minute
	MaxGone = 1_000
)

// Departure is how a node went.
type Departure string

const (
	// DepartedLost is a node that was not heard of for LostTimeout, or whose keys vanished from the registry.
	DepartedLost Departure = "lost"
	// DepartedLeft is a node that drained and said goodbye.
	DepartedLeft Departure = "left"
	// DepartedReplaced is an incarnation whose successor has proof that it is dead.
	DepartedReplaced Departure = "replaced"
	// DepartedEvicted is a node that the leader put out of the registry since it started nothing of what it was sent.
	DepartedEvicted Departure = "evicted"
)

// GoneNode is an incarnation that is gone, and what became of the tasks that it held then. Its times are those of the
// clock that the fleet is given, which goes on in suspend.
type GoneNode struct {
	Key
	How      Departure
	At       time.Duration // when this leader found that it is gone
	LastSeen time.Duration // when its last heartbeat was seen; 0 = this leader has seen none

	Reassigned int // tasks that went back to waiting, to run elsewhere
	Ended      int // tasks whose run ended after all: by a late report, by a cancel, or because their nodes died too often
	Waiting    int // tasks that are still to be taken back
}

// departures are the nodes that are gone, the oldest first.
type departures struct {
	byKey map[Key]*departure
	order []*departure
}

type departure struct {
	GoneNode
	tasks int // that it held when it was found to be gone, or got since then
}

// add remembers that a member is gone, once for each incarnation.
func (d *departures) add(m *member, now time.Duration) {
	if _, known := d.byKey[m.key]; known {
		return
	}
	how := DepartedLost
	switch {
	case m.replaced:
		how = DepartedReplaced
	case m.left:
		how = DepartedLeft
	case m.evicted:
		how = DepartedEvicted
	}
	gone := &departure{tasks: len(m.claims),
		GoneNode: GoneNode{Key: m.key, How: how, At: now, LastSeen: max(m.seenAt, m.kafkaAt)}}
	d.byKey[m.key] = gone
	d.order = append(d.order, gone)
	d.prune(now)
}

// prune forgets what is too old, or too much.
func (d *departures) prune(now time.Duration) {
	for len(d.order) > 0 && (len(d.order) > MaxGone || now-d.order[0].At > GoneFor) {
		delete(d.byKey, d.order[0].Key)
		d.order = d.order[1:]
	}
}

// remove forgets an incarnation that is there after all.
func (d *departures) remove(k Key) {
	if gone, ok := d.byKey[k]; ok {
		delete(d.byKey, k)
		d.order = slices.DeleteFunc(d.order, func(o *departure) bool { return o == gone })
	}
}

// left notes that an incarnation said goodbye: its keys may have vanished before that was read.
func (d *departures) left(k Key) {
	if gone, ok := d.byKey[k]; ok && gone.How == DepartedLost && gone.tasks == 0 {
		gone.How = DepartedLeft
	}
}

// claimed counts a claim of an incarnation that comes to be known when it is gone.
func (d *departures) claimed(k Key) {
	if gone, ok := d.byKey[k]; ok {
		gone.tasks++
	}
}

// ended counts a task of an incarnation that ends when it is gone.
func (d *departures) ended(k Key) {
	if gone, ok := d.byKey[k]; ok {
		gone.Ended++
	}
}

// Gone returns the nodes that have gone within GoneFor before now, the last first. A node that came back as the same
// incarnation is not among them; one that came back as another is.
func (l *Liveness) Gone(now time.Duration) []GoneNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.departures.prune(now)
	list := make([]GoneNode, 0, len(l.departures.order))
	for _, d := range slices.Backward(l.departures.order) {
		g := d.GoneNode
		if m, ok := l.members[g.Key]; ok {
			g.Waiting = len(m.claims)
		}
		g.Reassigned = max(d.tasks-g.Ended-g.Waiting, 0)
		list = append(list, g)
	}
	return list
}
