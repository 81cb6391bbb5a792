package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Dispatcher is the dispatcher's settings that can change at run time, as one document. The zero value changes nothing
// of the configuration.
type Dispatcher struct {
	Version          int64    `json:"version"`                    // +1 at every change
	Strategy         string   `json:"strategy,omitempty"`         // empty = as configured
	Paused           bool     `json:"paused,omitempty"`           // nothing is dispatched
	PausedClasses    []string `json:"pausedClasses,omitempty"`    // sorted; tasks of these are not
	PausedNamespaces []string `json:"pausedNamespaces,omitempty"` // sorted; nor of these; "" is the namespace of tasks without one

	Rate       *Rate           `json:"rate,omitempty"`       // of the whole dispatcher; nil = no limit
	ClassRates map[string]Rate `json:"classRates,omitempty"` // by class
	NodeRates  map[string]Rate `json:"nodeRates,omitempty"`  // by node id; AnyNode is that of nodes without an own one

	NamespaceLimits map[string]int `json:"namespaceLimits,omitempty"` // tasks on nodes at once, by namespace
	Pools           map[string]int `json:"pools,omitempty"`           // tasks on nodes at once, by pool
}

// AnyNode is the key in NodeRates for every node that has no entry of its own.
const AnyNode = "*"

// Rate is a token bucket.
type Rate struct {
	PerSecond float64 `json:"perSecond"` // 0 = none at all
	Burst     int     `json:"burst"`     // 1 or more
}

// Limits of the settings.
const (
	MaxSettings  = 1000       // entries of each list and map
	MaxNameBytes = 256        // of an entry's name
	MaxRate      = 1_000_000  // tasks a second, and the burst
	MaxTasks     = 10_000_000 // of a namespace or a pool on nodes at once
)

// Clone returns a copy that shares no memory with d.
func (d *Dispatcher) Clone() Dispatcher {
	c := *d
	c.PausedClasses, c.PausedNamespaces = slices.Clone(d.PausedClasses), slices.Clone(d.PausedNamespaces)
	if d.Rate != nil {
		c.Rate = new(*d.Rate)
	}
	c.ClassRates, c.NodeRates = maps.Clone(d.ClassRates), maps.Clone(d.NodeRates)
	c.NamespaceLimits, c.Pools = maps.Clone(d.NamespaceLimits), maps.Clone(d.Pools)
	return c
}

// Next returns what SwapDispatcher stores for d: the version after d's, lists sorted and without duplicates, nil for
// what is empty. It shares no memory with d. Its error is Check's.
func (d *Dispatcher) Next() (Dispatcher, error) {
	if err := d.Check(); err != nil {
		return Dispatcher{}, err
	}
	n := d.Clone()
	n.Version++
	for _, list := range []*[]string{&n.PausedClasses, &n.PausedNamespaces} {
		slices.Sort(*list)
		if *list = slices.Compact(*list); len(*list) == 0 {
			*list = nil
		}
	}
	dropEmpty(&n.ClassRates, &n.NodeRates)
	dropEmpty(&n.NamespaceLimits, &n.Pools)
	return n, nil
}

func dropEmpty[V any](all ...*map[string]V) {
	for _, m := range all {
		if len(*m) == 0 {
			*m = nil
		}
	}
}

// Check reports what is wrong with the settings.
func (d *Dispatcher) Check() error {
	var rate error
	if d.Rate != nil {
		rate = d.Rate.Check("rate")
	}
	return errors.Join(
		rate, checkNames("pausedClasses", d.PausedClasses), checkNames("pausedNamespaces", d.PausedNamespaces),
		checkRates("classRates", d.ClassRates), checkRates("nodeRates", d.NodeRates),
		checkLimits("namespaceLimits", d.NamespaceLimits), checkLimits("pools", d.Pools),
	)
}

func checkNames(kind string, names []string) error {
	if len(names) > MaxSettings {
		return fmt.Errorf("%s: %d entries, %d at most: %w", kind, len(names), MaxSettings, ErrTooMany)
	}
	for _, name := range names {
		if len(name) > MaxNameBytes || !utf8.ValidString(name) {
			return fmt.Errorf("%s: %q...: must be at most %d bytes of UTF-8", kind, name[:min(len(name), 40)], MaxNameBytes)
		}
	}
	return nil
}

func checkRates(kind string, rates map[string]Rate) error {
	names := slices.Sorted(maps.Keys(rates))
	errs := append(make([]error, 0, 1+len(names)), checkNames(kind, names))
	for _, name := range names {
		errs = append(errs, rates[name].Check(kind+"."+name))
	}
	return errors.Join(errs...)
}

func checkLimits(kind string, limits map[string]int) error {
	names := slices.Sorted(maps.Keys(limits))
	errs := append(make([]error, 0, 1+len(names)), checkNames(kind, names))
	for _, name := range names {
		if n := limits[name]; n < 0 || n > MaxTasks {
			errs = append(errs, fmt.Errorf("%s.%s is %d: must be 0 (none may run) to %d", kind, name, n, MaxTasks))
		}
	}
	return errors.Join(errs...)
}

// Check reports what is wrong with a rate; name is what it applies to.
func (r Rate) Check(name string) error {
	switch {
	case math.IsNaN(r.PerSecond) || r.PerSecond < 0 || r.PerSecond > MaxRate:
		return fmt.Errorf("%s: perSecond is %v: must be 0 (none may start) to %d", name, r.PerSecond, MaxRate)
	case r.Burst < 1 || r.Burst > MaxRate:
		return fmt.Errorf("%s: burst is %d: must be 1 to %d", name, r.Burst, MaxRate)
	}
	return nil
}

// Settings change at run time. They survive restarts and are the same for all controllers.
type Settings interface {
	// Dispatcher returns the dispatcher's settings; the zero value if there are none yet.
	Dispatcher(ctx context.Context) (Dispatcher, error)
	// SwapDispatcher replaces the settings if their version is still next.Version, and stores next with the version
	// after it. It reports false if they have changed meanwhile, and returns an error for settings that Check refuses.
	SwapDispatcher(ctx context.Context, next Dispatcher) (bool, error)
	// Draining returns the ids of the nodes that people drain, in order.
	Draining(ctx context.Context) ([]string, error)
	// SetDraining adds a node's id to them, or removes it. It may be called again. It returns ErrTooMany beyond
	// MaxDraining.
	SetDraining(ctx context.Context, node string, draining bool) error
}

// MaxDraining is how many nodes people may drain at once.
const MaxDraining = 1000

// ErrTooMany is the error for one more of something whose number is bounded.
var ErrTooMany = errors.New("too many")
