package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/pkg/store"
)

// buckets are the token buckets of the rates. Only a task that gets a node takes tokens, and one that certainly did not go there gives them back.
type buckets struct {
	all     *bucket
	classes bucketsByName
	nodes   bucketsByName
	limited map[string]struct{} // nodes that placement was told to leave out, for want of a token
}

// spend takes the tokens of a task that gets a node. They are there.
func (b *buckets) spend(class, node string, now time.Time) { b.each(class, node, now, -1) }

// refund gives them back.
func (b *buckets) refund(class, node string, now time.Time) { b.each(class, node, now, 1) }

func (b *buckets) each(class, node string, now time.Time, by float64) {
	b.all.add(by, now)
	b.classes.of(class, now).add(by, now)
	b.nodes.of(node, now).add(by, now)
}

// bucket is one token bucket: what it held at a time.
type bucket struct {
	rate store.Rate
	held float64
	when time.Time
}

// at is the bucket with another rate; what it holds stays. nil is no limit.
func (b *bucket) at(r *store.Rate, now time.Time) *bucket {
	switch {
	case r == nil:
		return nil
	case b == nil:
		return &bucket{rate: *r, held: float64(r.Burst), when: now}
	case b.rate != *r:
		b.add(0, now) // what has come by the old rate
		b.rate = *r
	}
	return b
}

// holds is what is in the bucket, never more than its burst.
func (b *bucket) holds(now time.Time) float64 {
	return min(b.held+b.rate.PerSecond*max(now.Sub(b.when), 0).Seconds(), float64(b.rate.Burst))
}

// add puts tokens in, or takes them out. A time before that of the last one counts as that: a round goes by the time at which it began.
func (b *bucket) add(n float64, now time.Time) {
	if b == nil {
		return
	}
	b.held = b.holds(now) + n
	if now.After(b.when) {
		b.when = now
	}
}

// ready says whether there is a token. A rate of 0 has none, not even the first.
func (b *bucket) ready(now time.Time) bool {
	return b == nil || b.rate.PerSecond > 0 && b.holds(now) >= 1
}

// tokens is how many tokens there are, or more than any round takes.
func (b *bucket) tokens(now time.Time) int {
	if b == nil {
		return maxTasks
	}
	return int(b.holds(now))
}

// wait is how long it is until there is a token; 0 = there is one, or there will be none.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.ready(now) || b.rate.PerSecond == 0 {
		return 0
	}
	const rounding = time.Microsecond
	return time.Duration((1-b.holds(now))/b.rate.PerSecond*float64(time.Second)) + rounding
}

// bucketsByName is the buckets of classes or of nodes. Those of names without a rate of their own are made when they are needed, as AnyNode says.
type bucketsByName struct {
	rates  map[string]store.Rate
	byName map[string]*bucket
}

// maxBuckets bounds the buckets of nodes that are not named.
const maxBuckets = 100_000

// use takes over rates.
func (b bucketsByName) use(rates map[string]store.Rate, now time.Time) bucketsByName {
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

func (b bucketsByName) rate(name string) (store.Rate, bool) {
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
func (b *bucketsByName) of(name string, now time.Time) *bucket {
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
