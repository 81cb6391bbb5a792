package dispatcher

import (
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
)

// settings are the settings that the gates use.
type settings struct {
	version    int64
	strategy   placement.Strategy
	paused     bool
	classes    map[string]bool // paused ones
	namespaces map[string]bool // paused ones
	limits     map[string]int  // of namespaces
	pools      map[string]int
}

// Use applies settings from the next round on, unless they are older than those in force. It reports whether they are
// newer.
func (d *Dispatcher) Use(s store.Dispatcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.gates.settings.version
	if s.Version < old {
		return false
	}
	d.gates.settings = settings{version: s.Version, strategy: Strategy(&s, d.cfg.Strategy), paused: s.Paused, classes: set(s.PausedClasses),
		namespaces: set(s.PausedNamespaces), limits: s.NamespaceLimits, pools: s.Pools}
	d.gates.rates.use(&s, d.gates.moment())
	if len(s.NodeRates) == 0 {
		d.picker.endRateLimits()
	}
	return s.Version > old
}

// Strategy returns the strategy in force: the one that was set at run time, or else the configured one.
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

// Recallable returns claims that were sent, have not begun, and would not be sent now, since a person has paused the
// dispatcher, their class or their namespace.
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
