package placement

import (
	"cmp"
	"fmt"
	"slices"
)

var sticky = definition{
	name: Sticky,
	choose: func(s *stage) chooser {
		return &sticking{ranking: rankingOf(s, (*node).ratio), open: drawing{stage: s}}
	},
	score: func(x *scan) (rank, func(n *node) string) {
		if x.q.StickyKey == "" {
			return leastTasks.score(x)
		}
		key := hash(x.q.StickyKey)
		order := slices.SortedFunc(slices.Values(x.members), func(a, b *node) int {
			return cmp.Compare(affinity(key, hash(b.id)), affinity(key, hash(a.id)))
		})
		place := make(map[*node]int, len(order))
		for i, n := range order {
			place[n] = i + 1
		}
		return func(n *node) float64 { return float64(place[n]) }, func(n *node) string {
			return fmt.Sprintf("place %d of %d in the order of the sticky key; %s", place[n], len(order), n.describeSlots())
		}
	},
}

// affinity returns the affinity of a key to a node, by the hashes of both (rendezvous hashing). A key goes to the node
// of the highest affinity. When a node leaves, only its own keys move.
func affinity(key, node uint64) uint64 { return mix(key ^ node) }

// sticking is the chooser of STICKY. It picks the node of the highest affinity among those that fit. A request without
// a key is placed as by LEAST_TASKS.
type sticking struct {
	ranking
	open   drawing // the members that may fit
	nodes  []int32 // all members
	hashes []uint64
	hash   byNode[uint64]
	epoch  uint64 // of the members
}

func (s *sticking) add(i int32) {
	s.ranking.add(i)
	s.open.add(i)
}

func (s *sticking) any() bool { return s.open.any() }

func (s *sticking) pick(q *Request) int32 {
	if q.StickyKey == "" {
		return s.ranking.pick(q)
	}
	if s.epoch != s.p.epoch {
		s.refresh()
	}
	key := hash(q.StickyKey)
	f, found := s.c.favourites.find(key, s.epoch)
	if !found {
		f.fill(key, s)
	}
	for _, i := range f.nodes {
		if i < 0 {
			return -1 // there are no more members
		}
		if s.takes(i) {
			return i
		}
	}
	return s.first(key)
}

func (s *sticking) takes(i int32) bool {
	n := &s.c.nodes[i]
	return s.fits(n) && !s.c.excluded(n)
}

// refresh reads the members of the present epoch.
func (s *sticking) refresh() {
	s.epoch, s.nodes, s.hashes = s.p.epoch, s.nodes[:0], s.hashes[:0]
	s.hash = newByNode[uint64](len(s.c.nodes), s.p.members.size())
	for i := range s.p.members.all {
		h := hash(s.c.nodes[i].id)
		s.nodes = append(s.nodes, i)
		s.hashes = append(s.hashes, h)
		s.hash.set(i, h)
	}
}

// first picks among all members that may fit, for a key whose favourites are full.
func (s *sticking) first(key uint64) int32 {
	best, most := int32(-1), uint64(0)
	for at, i := range slices.Backward(s.open.list) {
		switch {
		case !s.open.fitting(i):
			s.open.removeAt(at)
		case s.c.excluded(&s.c.nodes[i]):
		default:
			if a := affinity(key, s.hash.get(i)); best < 0 || a > most {
				best, most = i, a
			}
		}
	}
	return best
}

// Sizes of favourites.
const (
	favouriteNodes = 12
	favouriteWays  = 4
	favouriteSets  = 1 << 13
)

// favourites caches the nodes of the highest affinity for each key. It is a set-associative cache of 32,768 keys, and
// each set drops its least recently used key.
type favourites [][favouriteWays]favourite

// favourite is the entry of a key.
type favourite struct {
	key, epoch uint64                // epoch of the members that it was found among
	nodes      [favouriteNodes]int32 // by falling affinity; -1 = there are no more
}

// find returns the entry of a key, and whether it is filled in for the members of an epoch.
func (f *favourites) find(key, epoch uint64) (*favourite, bool) {
	if *f == nil {
		*f = make(favourites, favouriteSets)
	}
	set := &(*f)[key%favouriteSets]
	at := slices.IndexFunc(set[:], func(e favourite) bool { return e.key == key && e.epoch == epoch })
	found := at >= 0
	if !found {
		at = favouriteWays - 1
	}
	if at > 0 {
		e := set[at]
		copy(set[1:at+1], set[:at])
		set[0] = e
	}
	set[0].key, set[0].epoch = key, epoch
	return &set[0], found
}

// fill fills in the nodes of the highest affinity.
func (e *favourite) fill(key uint64, s *sticking) {
	var wants [favouriteNodes]uint64
	count := 0
	for k, h := range s.hashes {
		a := affinity(key, h)
		if count == favouriteNodes && a <= wants[favouriteNodes-1] {
			continue
		}
		if count < favouriteNodes {
			count++
		}
		at := count - 1
		for at > 0 && wants[at-1] < a {
			wants[at], e.nodes[at] = wants[at-1], e.nodes[at-1]
			at--
		}
		wants[at], e.nodes[at] = a, s.nodes[k]
	}
	for at := count; at < favouriteNodes; at++ {
		e.nodes[at] = -1
	}
}
