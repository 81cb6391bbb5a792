package dispatcher

import (
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
)

// settings is what the dispatcher goes by, as it was changed last at run time.
type settings struct {
	version    int64
	strategy   placement.Strategy
	paused     bool
	classes    map[string]bool // paused ones
	namespaces map[string]bool // likewise
	limits     map[string]int  // of namespaces
	pools      map[string]int
}

// Use takes over settings from the next round on, unless they are older than those in force. It says whether they are newer.
func (d *Dispatcher) Use(s store.Dispatcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Version < d.gates.settings.version {
		return false
	}
	newer := s.Version > d.gates.settings.version
	d.gates.settings = settings{version: s.Version, strategy: Strategy(&s, d.cfg.Strategy), paused: s.Paused, classes: set(s.PausedClasses),
		namespaces: set(s.PausedNamespaces), limits: s.NamespaceLimits, pools: s.Pools}
	now := d.gates.moment()
	d.gates.buckets.all = d.gates.buckets.all.at(s.Rate, now)
	d.gates.buckets.classes = d.gates.buckets.classes.use(s.ClassRates, now)
	d.gates.buckets.nodes = d.gates.buckets.nodes.use(s.NodeRates, now)
	if len(s.NodeRates) == 0 {
		for id := range d.gates.buckets.limited {
			d.picker.cluster.SetRateLimited(id, false)
		}
		clear(d.gates.buckets.limited)
	}
	return newer
}

// Strategy is the one in force: as set at run time, or else as configured.
func Strategy(s *store.Dispatcher, configured placement.Strategy) placement.Strategy {
	if set, ok := placement.ParseStrategy(s.Strategy); ok {
		return set
	}
	return configured
}

func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

// maxRecalled bounds how many claims are recalled at a time.
const maxRecalled = 1000

// Recallable gives claims that were sent, have not begun, and would not be sent now, since a person has paused what they are of.
func (d *Dispatcher) Recallable() []fleet.Claim {
	d.mu.Lock()
	s := d.gates.settings
	d.mu.Unlock()
	if !s.paused && len(s.classes) == 0 && len(s.namespaces) == 0 {
		return nil
	}
	return d.fleet.Unbegun(func(c *fleet.Claim) bool {
		return s.paused || s.classes[c.Class] || s.namespaces[c.Namespace]
	}, maxRecalled)
}
