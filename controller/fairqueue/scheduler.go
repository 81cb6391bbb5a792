// Package fairqueue decides which queue of tasks comes next. It is pure: no I/O, no clock, no goroutine; the same calls give the same order.
//
// Three rules, one inside the other:
//
//   - Between levels: a queue's level is its priority, and one more for every time its head has waited through the ageing time, up to the
//     highest. Strict takes the highest level that has anything; Weighted gives level p a share of p+1, by smooth weighted round robin (as
//     nginx picks its servers).
//   - Between the namespaces of a level: deficit round robin (M. Shreedhar and G. Varghese, 1996), counted in slots.
//   - Between the queues of a namespace in a level: the head that was created first, then the lower id.
//
// Invariants:
//
//   - In Strict, with an ageing time, a head waits only as long as it takes to reach the highest level behind what was created before it.
//   - Next changes nothing that matters: only what is said to be Served counts against a level or a namespace.
package fairqueue

import (
	"container/heap"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Mode is how levels of priority share the nodes.
type Mode string

// The modes.
const (
	// Strict serves nothing of a level while a higher one has anything that can run.
	Strict Mode = "strict"
	// Weighted serves priority p in proportion to p+1.
	Weighted Mode = "weighted"
)

// Config is how the order is made.
type Config struct {
	Mode  Mode
	Aging time.Duration // how long a head waits for each step up; 0 = it does not rise
}

// Item is a queue, as far as its place depends on it.
type Item struct {
	Priority  int
	Namespace string
	Slots     int    // what the head takes
	Created   int64  // of the head, epoch ms
	ID        string // of the head
	Of        any    // what the caller knows the queue by

	level int
}

// levels is how many there are.
const levels = task.MaxPriority - task.MinPriority + 1

// Scheduler is the order of one leadership. It is not safe for concurrent use.
type Scheduler struct {
	cfg    Config
	now    int64
	round  int64
	levels [levels]level
}

// level is the queues of one level.
type level struct {
	spaces map[string]*space // of this round and the last
	ring   ring              // those that have queues in this round
	turns  int64             // given so far
	widest int               // slots of any head since the level was empty last: each turn is worth as many
	share  int64             // of smooth weighted round robin
	round  int64             // the last round that had anything
}

// space is a namespace in a level.
type space struct {
	name    string
	items   items
	turn    int64 // the lowest is next
	deficit int   // slots to its credit
	granted bool  // it got its quantum in the present turn
	at      int   // in the ring
	round   int64 // the last round in which it had anything
}

// New makes an order without queues.
func New(cfg Config) *Scheduler {
	o := &Scheduler{cfg: cfg}
	for i := range o.levels {
		o.levels[i] = level{spaces: make(map[string]*space), widest: 1}
	}
	return o
}

// Begin begins a round at a time (epoch ms): no queue is in it, see Continue. What levels and namespaces are owed stays for those that had queues in the
// last round.
func (o *Scheduler) Begin(now int64) {
	for i := range o.levels {
		l := &o.levels[i]
		for name, s := range l.spaces {
			clear(s.items)
			s.items = s.items[:0]
			if s.round != o.round {
				delete(l.spaces, name)
			}
		}
		if l.round != o.round {
			l.share, l.turns, l.widest = 0, 0, 1
		}
		clear(l.ring)
		l.ring = l.ring[:0]
	}
	o.now = now
	o.round++
}

// Continue goes on with the present round: its queues stay in it, at the levels that they had when it began. It reports false where that was too
// long ago, and a round is to Begin.
func (o *Scheduler) Continue(now int64) bool {
	longest := time.Second
	if o.cfg.Aging > 0 {
		longest = min(longest, o.cfg.Aging/10)
	}
	return o.round > 0 && now >= o.now && now-o.now < longest.Milliseconds()
}

// Level is where an item stands now. A script may have written any time of creation.
func (o *Scheduler) Level(it *Item) int {
	p := min(max(it.Priority, task.MinPriority), task.MaxPriority)
	step, waited := o.cfg.Aging.Milliseconds(), o.now-it.Created
	switch {
	case step <= 0 || o.now <= it.Created:
		return p
	case waited < 0: // longer than a number of milliseconds can say
		return task.MaxPriority
	}
	return int(min(int64(p)+waited/step, task.MaxPriority))
}

// Push puts a queue into the round, by its head.
func (o *Scheduler) Push(it *Item) {
	it.level = o.Level(it)
	l := &o.levels[it.level-task.MinPriority]
	s, ok := l.spaces[it.Namespace]
	if !ok {
		s = &space{name: it.Namespace, turn: l.turns}
		l.spaces[it.Namespace] = s
	}
	l.widest = max(l.widest, it.Slots)
	l.round, s.round = o.round, o.round
	heap.Push(&s.items, it)
	if len(s.items) == 1 {
		heap.Push(&l.ring, s)
	}
}

// Next takes the queue out of the round whose head comes next; nil if there is none.
func (o *Scheduler) Next() *Item {
	l := o.next()
	if l == nil {
		return nil
	}
	s := l.next()
	it, _ := heap.Pop(&s.items).(*Item)
	if len(s.items) == 0 {
		heap.Remove(&l.ring, s.at)
	}
	return it
}

// next gives the level that comes next.
func (o *Scheduler) next() *level {
	var best *level
	most := int64(0)
	for i := len(o.levels) - 1; i >= 0; i-- {
		l := &o.levels[i]
		if len(l.ring) == 0 {
			continue
		}
		if o.cfg.Mode != Weighted {
			return l
		}
		if share := l.share + weight(i); best == nil || share > most {
			best, most = l, share
		}
	}
	return best
}

func weight(i int) int64 { return int64(i) + 1 }

// next gives the namespace that comes next: in its turn each gets as much as the widest head needs, and goes on until its credit is too
// small for its next head.
func (l *level) next() *space {
	for {
		s := l.ring[0]
		switch {
		case s.deficit >= max(s.items[0].Slots, 1):
			return s
		case !s.granted:
			s.granted = true
			s.deficit += l.widest
			return s
		}
		l.turns++
		s.granted, s.turn = false, l.turns
		heap.Fix(&l.ring, 0)
	}
}

// Served notes that the head of a queue, as Next gave it, got a node.
func (o *Scheduler) Served(it *Item) {
	i := it.level - task.MinPriority
	l := &o.levels[i]
	l.spaces[it.Namespace].deficit -= max(it.Slots, 1)
	if o.cfg.Mode != Weighted {
		return
	}
	// Every level that has something gets its weight; the one that was served pays for all.
	for j := range o.levels {
		if other := &o.levels[j]; j == i || len(other.ring) > 0 {
			other.share += weight(j)
			l.share -= weight(j)
		}
	}
}

// items is a heap: the head that was created first stands first.
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

// ring is a heap of namespaces by whose turn it is.
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
