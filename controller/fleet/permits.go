package fleet

import (
	"maps"
	"slices"
	"sync"

	"github.com/skalds-go/skalds/pkg/task"
)

// Permits is what the claims take of the cluster as a whole: the permits of concurrency keys and pools, and the counts
// by namespace and anti-affinity key.
type Permits struct {
	mu           *sync.Mutex
	keys         permitSets
	pools        permitSets
	namespaces   map[string]int            // claims by namespace
	antiAffinity map[string]map[string]int // claims by anti-affinity key and node id
}

func newPermits(mu *sync.Mutex) *Permits {
	return &Permits{mu: mu, keys: make(permitSets), pools: make(permitSets), namespaces: make(map[string]int),
		antiAffinity: make(map[string]map[string]int)}
}

// count adds what a claim takes, or takes it away.
func (p *Permits) count(c *Claim, by int) {
	add(p.namespaces, c.Namespace, by)
	p.keys.count(c.KeyPermit, by)
	p.pools.count(c.PoolPermit, by)
	key := c.AntiAffinityKey
	if key == "" {
		return
	}
	if p.antiAffinity[key] == nil {
		p.antiAffinity[key] = make(map[string]int)
	}
	if add(p.antiAffinity[key], c.Node, by); len(p.antiAffinity[key]) == 0 {
		delete(p.antiAffinity, key)
	}
}

// FreePermits returns a permit of a concurrency key and one of a pool; an empty name needs none. It reports which of
// them has none left. It does not take them: Reserve does.
func (p *Permits) FreePermits(key string, keyLimit int, pool string, poolLimit int) (
	keyPermit, poolPermit string, keyFull, poolFull bool,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key != "" {
		n, ok := p.keys.free(key, keyLimit)
		if !ok {
			return "", "", true, false
		}
		keyPermit = task.Permit(key, n)
	}
	if pool != "" {
		n, ok := p.pools.free(pool, poolLimit)
		if !ok {
			return "", "", false, true
		}
		poolPermit = task.Permit(pool, n)
	}
	return keyPermit, poolPermit, false, false
}

// PermitLost notes that the store refused a claim with permits: another task may hold them that this leader does not
// know of yet. They are not used again before the next comparison with the store.
func (p *Permits) PermitLost(c *Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys.addForeign(c.KeyPermit)
	p.pools.addForeign(c.PoolPermit)
}

// forgetForeign frees what others held: a comparison with the store has shown who holds what.
func (p *Permits) forgetForeign() {
	p.keys.forgetForeign()
	p.pools.forgetForeign()
}

// NamespaceCount returns how many tasks of a namespace are on nodes.
func (p *Permits) NamespaceCount(namespace string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.namespaces[namespace]
}

// KeyCount returns how many tasks with a concurrency key are on nodes.
func (p *Permits) KeyCount(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys.used(key)
}

// PoolCount returns how many tasks of a pool are on nodes.
func (p *Permits) PoolCount(pool string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pools.used(pool)
}

// NodesWithAntiAffinity returns the nodes that hold a task of an anti-affinity key.
func (p *Permits) NodesWithAntiAffinity(key string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.antiAffinity[key]))
}
