package fleet

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// counts is what the claims take of the cluster as a whole.
type counts struct {
	unstarted  int            // claims of which the node has said nothing yet
	namespaces map[string]int // claims by namespace
	anti       nodesByKey
	keys       permits
	pools      permits
}

func newCounts() counts {
	return counts{namespaces: make(map[string]int), anti: make(nodesByKey), keys: make(permits), pools: make(permits)}
}

// nodesByKey is how many claims of an anti-affinity key each node holds.
type nodesByKey map[string]map[string]int

func (n nodesByKey) plus(key, node string, by int) {
	if n[key] == nil {
		n[key] = make(map[string]int)
	}
	if plus(n[key], node, by); len(n[key]) == 0 {
		delete(n, key)
	}
}

// permits is which permits of each name are taken: of a concurrency key, or of a pool.
type permits map[string]*taken

// taken is the permits of one name: which numbers claims hold, and which somebody else holds, as the store has shown.
type taken struct {
	held    map[int]int // claims by number; more than one only while the picture is behind the store
	foreign map[int]struct{}
	used    []uint64 // a bit for each number in either
}

// number reads a permit's name and number; ok is false for a text that is no permit.
func number(permit string) (name string, n int, ok bool) {
	at := strings.LastIndexByte(permit, '#')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(permit[at+1:])
	return permit[:at], n, err == nil && n >= 0 && n < store.MaxTasks
}

func (p permits) of(name string) *taken {
	t, ok := p[name]
	if !ok {
		t = &taken{held: make(map[int]int)}
		p[name] = t
	}
	return t
}

// take counts a claim's permit as taken, or as free again.
func (p permits) take(permit string, by int) {
	name, n, ok := number(permit)
	if !ok {
		return
	}
	t := p.of(name)
	if t.held[n] += by; t.held[n] <= 0 {
		delete(t.held, n)
	}
	p.mark(name, t, n)
}

// mark brings the bit of a number up to date.
func (p permits) mark(name string, t *taken, n int) {
	_, foreign := t.foreign[n]
	word, bit := n/64, uint64(1)<<(n%64)
	for len(t.used) <= word {
		t.used = append(t.used, 0)
	}
	if t.held[n] > 0 || foreign {
		t.used[word] |= bit
		return
	}
	t.used[word] &^= bit
	if len(t.held)+len(t.foreign) == 0 {
		delete(p, name)
	}
}

// free gives the lowest number below the limit that nobody holds.
func (p permits) free(name string, limit int) (int, bool) {
	t, ok := p[name]
	if !ok {
		return 0, limit > 0
	}
	for word, used := range t.used {
		if used != ^uint64(0) {
			n := word*64 + bits.TrailingZeros64(^used)
			return n, n < limit
		}
	}
	n := 64 * len(t.used)
	return n, n < limit
}

// inUse is how many permits of a name are taken.
func (p permits) inUse(name string) int {
	t, ok := p[name]
	if !ok {
		return 0
	}
	n := 0
	for _, used := range t.used {
		n += bits.OnesCount64(used)
	}
	return n
}

// foreign notes that somebody else holds a permit: the store would not give it.
func (p permits) foreign(permit string) {
	name, n, ok := number(permit)
	if !ok {
		return
	}
	t := p.of(name)
	if t.foreign == nil {
		t.foreign = make(map[int]struct{})
	}
	t.foreign[n] = struct{}{}
	p.mark(name, t, n)
}

// forget lets go of what others hold: a comparison with the store has shown who holds what.
func (p permits) forget() {
	for name, t := range p {
		numbers := t.foreign
		t.foreign = nil
		for n := range numbers {
			p.mark(name, t, n)
		}
	}
}

// FreePermits gives a permit for a concurrency key and one for a pool; an empty name needs none. It says which of them has none left.
// It takes nothing: that is for Reserve.
func (f *Fleet) FreePermits(key string, keyLimit int, pool string, poolLimit int) (keyPermit, poolPermit string, keyFull, poolFull bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key != "" {
		n, ok := f.counts.keys.free(key, keyLimit)
		if !ok {
			return "", "", true, false
		}
		keyPermit = task.Permit(key, n)
	}
	if pool != "" {
		n, ok := f.counts.pools.free(pool, poolLimit)
		if !ok {
			return "", "", false, true
		}
		poolPermit = task.Permit(pool, n)
	}
	return keyPermit, poolPermit, false, false
}

// PermitLost notes that the store would not give a claim, which asked for permits: another task may hold them, of which this leader does not
// know yet. They are not asked for again before the next comparison with the store.
func (f *Fleet) PermitLost(c *Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.keys.foreign(c.KeyPermit)
	f.counts.pools.foreign(c.PoolPermit)
}

// NamespaceCount is how many tasks of a namespace are on nodes.
func (f *Fleet) NamespaceCount(namespace string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.namespaces[namespace]
}

// KeyCount is how many tasks with a concurrency key are on nodes.
func (f *Fleet) KeyCount(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.keys.inUse(key)
}

// PoolCount is how many tasks of a pool are on nodes.
func (f *Fleet) PoolCount(pool string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.pools.inUse(pool)
}

// Unstarted is how many claims were sent of which the node has said nothing yet.
func (f *Fleet) Unstarted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.unstarted
}

// NodesWithAntiAffinity gives the nodes that hold a task of an anti-affinity key.
func (f *Fleet) NodesWithAntiAffinity(key string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]string, 0, len(f.counts.anti[key]))
	for node := range f.counts.anti[key] {
		list = append(list, node)
	}
	return list
}
