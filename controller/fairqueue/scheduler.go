// Package fairqueue decides which queue of tasks comes next. It is pure: it does no I/O, reads no clock and starts no
// goroutine. The same calls lead to the same order.
//
// Three rules apply, one inside the other:
//
//   - Between levels: the level of a queue is its priority, plus one for each ageing time that its head has waited, up
//     to the highest priority. Strict takes the highest level that is not empty. Weighted gives level p a share of p+1,
//     by smooth weighted round robin (the algorithm by which nginx picks a server).
//   - Between the namespaces of a level: deficit round robin (M. Shreedhar and G. Varghese, 1996), counted in slots.
//   - Between the queues of a namespace in a level: the head that was created first, then the lower id.
//
// Invariants:
//
//   - In Strict mode with an ageing time, every head reaches the highest level. From then on it waits only for heads
//     that were created before it.
//   - Next charges nobody. Only Served counts against a level or a namespace.
package fairqueue

import (
	"container/heap"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Mode is how the levels share the nodes.
type Mode string

// The modes.
const (
	// Strict serves a level only while no higher level has a queue that can run.
	Strict Mode = "strict"
	// Weighted serves priority p in proportion to p+1.
	Weighted Mode = "weighted"
)

// Config configures a Scheduler.
type Config struct {
	Mode  Mode
	Aging time.Duration // the wait of a head for each level that it rises; 0 = it does not rise
}

// Item is a queue, as described by its head.
type Item struct {
	Priority  int
	Namespace string
	Slots     int    // that the head takes; below 1 counts as 1
	Created   int64  // creation time of the head, epoch ms
	ID        string // of the head
	Of        any    // the caller's own data of the queue

	level int
}

// levels is the number of levels.
const levels = task.MaxPriority - task.MinPriority + 1

// Scheduler orders the queues of one leadership. It is not safe for concurrent use.
type Scheduler struct {
	cfg    Config
	now    int64
	round  int64
	levels [levels]level
}

// level holds the queues of one level.
type level struct {
	spaces map[string]*space // the namespaces of this round and the last
	ring   ring              // the namespaces that have queues in this round
	turns  int64             // number of turns so far
	widest int               // the most slots of a head since the level was empty last: the quantum of a turn
	share  int64             // the current weight of smooth weighted round robin
	round  int64             // the last round in which the level had a queue
}

// space is a namespace in a level.
type space struct {
	name    string
	items   items
	turn    int64 // the lowest is next
	deficit int   // slots that it may still use
	granted bool  // whether it got the quantum of its present turn
	at      int   // its index in the ring
	round   int64 // the last round in which it had a queue
}

// New returns a Scheduler without queues.
func New(cfg Config) *Scheduler {
	s := &Scheduler{cfg: cfg}
	for i := range s.levels {
		s.levels[i] = level{spaces: make(map[string]*space), widest: 1}
	}
	return s
}

// Begin begins an empty round at a time (epoch ms). Levels and namespaces that had queues in the last round keep their
// shares and deficits.
func (s *Scheduler) Begin(now int64) {
	for i := range s.levels {
		l := &s.levels[i]
		for name, ns := range l.spaces {
			clear(ns.items)
			ns.items = ns.items[:0]
			if ns.round != s.round {
				delete(l.spaces, name)
			}
		}
		if l.round != s.round {
			l.share, l.turns, l.widest = 0, 0, 1
		}
		clear(l.ring)
		l.ring = l.ring[:0]
	}
	s.now = now
	s.round++
}

// Continue reports whether the present round may go on at a time (epoch ms). Its queues then stay at the levels that
// they had when they were pushed. Otherwise the round is too old, and the caller must call Begin.
func (s *Scheduler) Continue(now int64) bool {
	longest := time.Second
	if s.cfg.Aging > 0 {
		longest = min(longest, s.cfg.Aging/10)
	}
	return s.round > 0 && now >= s.now && now-s.now < longest.Milliseconds()
}

// Level returns the present level of an item. It accepts any creation time and priority, since scripts may have written
// them.
func (s *Scheduler) Level(it *Item) int {
	p := min(max(it.Priority, task.MinPriority), task.MaxPriority)
	step, waited := s.cfg.Aging.Milliseconds(), s.now-it.Created
	switch {
	case step <= 0 || s.now <= it.Created:
		return p
	case waited < 0: // the subtraction overflowed
		return task.MaxPriority
	}
	return int(min(int64(p)+waited/step, task.MaxPriority))
}

// Push adds a queue to the round, or adds it again with its next head.
func (s *Scheduler) Push(it *Item) {
	it.level = s.Level(it)
	l := &s.levels[it.level-task.MinPriority]
	ns, ok := l.spaces[it.Namespace]
	if !ok {
		ns = &space{name: it.Namespace, turn: l.turns}
		l.spaces[it.Namespace] = ns
	}
	l.widest = max(l.widest, it.Slots)
	l.round, ns.round = s.round, s.round
	heap.Push(&ns.items, it)
	if len(ns.items) == 1 {
		heap.Push(&l.ring, ns)
	}
}

// Next removes the queue whose head comes next from the round and returns it. It returns nil if the round is empty.
func (s *Scheduler) Next() *Item {
	l := s.next()
	if l == nil {
		return nil
	}
	ns := l.next()
	it, _ := heap.Pop(&ns.items).(*Item)
	if len(ns.items) == 0 {
		heap.Remove(&l.ring, ns.at)
	}
	return it
}

// next returns the level that comes next, or nil.
func (s *Scheduler) next() *level {
	var best *level
	most := int64(0)
	for i := len(s.levels) - 1; i >= 0; i-- {
		l := &s.levels[i]
		if len(l.ring) == 0 {
			continue
		}
		if s.cfg.Mode != Weighted {
			return l
		}
		if share := l.share + weight(i); best == nil || share > most {
			best, most = l, share
		}
	}
	return best
}

func weight(i int) int64 { return int64(i) + 1 }

// next returns the namespace that comes next. In its turn a namespace is granted the slots of the widest head. The turn
// ends when its deficit is too small for its next head.
func (l *level) next() *space {
	for {
		ns := l.ring[0]
		switch {
		case ns.deficit >= max(ns.items[0].Slots, 1):
			return ns
		case !ns.granted:
			ns.granted = true
			ns.deficit += l.widest
			return ns
		}
		l.turns++
		ns.granted, ns.turn = false, l.turns
		heap.Fix(&l.ring, 0)
	}
}

// Served charges an item that Next returned: its head got a node.
func (s *Scheduler) Served(it *Item) {
	i := it.level - task.MinPriority
	l := &s.levels[i]
	l.spaces[it.Namespace].deficit -= max(it.Slots, 1)
	if s.cfg.Mode != Weighted {
		return
	}
	// Every level that has a queue gains its weight. The level that was served pays for all of them.
	for j := range s.levels {
		if other := &s.levels[j]; j == i || len(other.ring) > 0 {
			other.share += weight(j)
			l.share -= weight(j)
		}
	}
}

// items is a heap of queues, the head that was created first at the top.
type items []*Item

func (h items) Len() int { return len(h) }
func (h items) Less(i, j int) bool {
	if h[i].Created != h[j].Created {
		return h[i].Created < h[j].Created
	}
	return h[i].ID < h[j].ID
}
func (h items) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *items) Push(x any) {
	it, _ := x.(*Item)
	*h = append(*h, it)
}

// Pop implements heap.Interface.
func (h *items) Pop() any {
	old := *h
	last := len(old) - 1
	it := old[last]
	old[last] = nil
	*h = old[:last]
	return it
}

// ring is a heap of namespaces, the one with the lowest turn at the top.
type ring []*space

func (r ring) Len() int { return len(r) }
func (r ring) Less(i, j int) bool {
	if r[i].turn != r[j].turn {
		return r[i].turn < r[j].turn
	}
	return r[i].name < r[j].name
}
func (r ring) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].at, r[j].at = i, j
}

// Push implements heap.Interface.
func (r *ring) Push(x any) {
	s, _ := x.(*space)
	s.at = len(*r)
	*r = append(*r, s)
}

// Pop implements heap.Interface.
func (r *ring) Pop() any {
	old := *r
	last := len(old) - 1
	s := old[last]
	old[last] = nil
	*r = old[:last]
	return s
}
