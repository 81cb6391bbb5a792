package fleet

import "github.com/skalds-go/skalds/controller/placement"

// The mean run times, in ms, below which a class may be queued at its nodes: as much as the capacity, and four times as
// much, which is the default of NODE_PREFETCH. So what is queued begins within 100 ms. See
// docs/adr/0012-deep-queues.md.
const (
	shortRun = 100.0
	briefRun = 10.0
)

// maxClasses bounds how many classes' run times are remembered.
const maxClasses = 10_000

// runTimes are moving means of the run times, in ms, by class.
type runTimes map[string]float64

// observe adds a run to the mean of its class. It counts for a fifth.
func (r runTimes) observe(class string, ms float64) {
	mean, ok := r[class]
	if !ok {
		if len(r) >= maxClasses {
			clear(r)
		}
		mean = ms
	}
	r[class] = mean + (ms-mean)/5
}

// PrefetchDepth returns how far tasks of a class may queue behind others, by how long its recent runs took. A class
// that has not run yet may not.
func (c *Claims) PrefetchDepth(class string) placement.PrefetchDepth {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch mean, ok := c.runTimes[class]; {
	case !ok || mean >= shortRun:
		return placement.NoPrefetch
	case mean >= briefRun:
		return placement.PrefetchOnce
	}
	return placement.PrefetchDeep
}

// AnyShortClass reports whether there is a class whose recent runs were short.
func (c *Claims) AnyShortClass() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, mean := range c.runTimes {
		if mean < shortRun {
			return true
		}
	}
	return false
}
