package dispatcher

import (
	"time"

	"golang.org/x/time/rate"

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
	if s.Version < d.settings.version {
		return false
	}
	newer := s.Version > d.settings.version
	d.settings = settings{version: s.Version, strategy: Strategy(&s, d.cfg.Strategy), paused: s.Paused, classes: set(s.PausedClasses),
		namespaces: set(s.PausedNamespaces), limits: s.NamespaceLimits, pools: s.Pools}
	now := d.moment()
	d.buckets.all = d.buckets.all.at(s.Rate, now)
	d.buckets.classes = d.buckets.classes.use(s.ClassRates, now)
	d.buckets.nodes = d.buckets.nodes.use(s.NodeRates, now)
	if len(s.NodeRates) == 0 {
		for id := range d.buckets.throttled {
			d.cluster.Throttle(id, false)
		}
		clear(d.buckets.throttled)
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

// moment is the time by which tokens are counted: it never goes back.
func (d *Dispatcher) moment() time.Time { return time.Unix(0, int64(d.clock.Boot())) }

// buckets are the token buckets of the rates. Only a task that gets a node takes tokens.
type buckets struct {
	all       *bucket
	classes   byName
	nodes     byName
	throttled map[string]struct{} // nodes that placement was told to leave out, for want of a token
}

// bucket is one token bucket.
type bucket struct {
	rate    store.Rate
	limiter *rate.Limiter
}

// at is the bucket with another rate; what it holds stays. nil is no limit.
func (b *bucket) at(r *store.Rate, now time.Time) *bucket {
	switch {
	case r == nil:
		return nil
	case b == nil:
		return &bucket{*r, rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)}
	case b.rate != *r:
		b.rate = *r
		b.limiter.SetLimitAt(now, rate.Limit(r.PerSecond))
		b.limiter.SetBurstAt(now, r.Burst)
	}
	return b
}

// ready says whether there is a token. A rate of 0 has none, not even the first.
func (b *bucket) ready(now time.Time) bool {
	return b == nil || b.rate.PerSecond > 0 && b.limiter.TokensAt(now) >= 1
}

// tokens is how many tokens there are, or more than any round takes.
func (b *bucket) tokens(now time.Time) int {
	if b == nil {
		return maxTasks
	}
	return int(max(b.limiter.TokensAt(now), 0))
}

// take takes a token that is there.
func (b *bucket) take(now time.Time) {
	if b != nil {
		b.limiter.AllowN(now, 1)
	}
}

// wait is how long it is until there is a token; 0 = there is one, or there will be none.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.ready(now) || b.rate.PerSecond == 0 {
		return 0
	}
	const rounding = time.Microsecond
	return time.Duration((1-b.limiter.TokensAt(now))/b.rate.PerSecond*float64(time.Second)) + rounding
}

// byName is the buckets of classes or of nodes. Those of names without a rate of their own are made when they are needed, as AnyNode says.
type byName struct {
	rates  map[string]store.Rate
	byName map[string]*bucket
}

// maxBuckets bounds the buckets of nodes that are not named.
const maxBuckets = 100_000

// use takes over rates.
func (b byName) use(rates map[string]store.Rate, now time.Time) byName {
	b.rates = rates
	for name, old := range b.byName {
		if r, ok := b.rate(name); ok {
			old.at(&r, now)
		} else {
			delete(b.byName, name)
		}
	}
	return b
}

func (b byName) rate(name string) (store.Rate, bool) {
	if len(b.rates) == 0 {
		return store.Rate{}, false
	}
	r, ok := b.rates[name]
	if !ok {
		r, ok = b.rates[store.AnyNode]
	}
	return r, ok
}

// of gives the bucket of a name; nil if it has no rate.
func (b *byName) of(name string, now time.Time) *bucket {
	if len(b.rates) == 0 {
		return nil
	}
	if known, ok := b.byName[name]; ok {
		return known
	}
	r, ok := b.rate(name)
	if !ok {
		return nil
	}
	if b.byName == nil || len(b.byName) >= maxBuckets {
		b.byName = make(map[string]*bucket)
	}
	fresh := (*bucket)(nil).at(&r, now)
	b.byName[name] = fresh
	return fresh
}

// maxRecalled bounds how many claims are recalled at a time.
const maxRecalled = 1000

// Recallable gives claims that were sent, have not begun, and would not be sent now, since a person has paused what they are of.
func (d *Dispatcher) Recallable() []fleet.Claim {
	d.mu.Lock()
	s := d.settings
	d.mu.Unlock()
	if !s.paused && len(s.classes) == 0 && len(s.namespaces) == 0 {
		return nil
	}
	return d.fleet.Unbegun(func(c *fleet.Claim) bool {
		return s.paused || s.classes[c.Class] || s.namespaces[c.Namespace]
	}, maxRecalled)
}
