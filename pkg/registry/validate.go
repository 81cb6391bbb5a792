package registry

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// What a node can say of itself at the most. Whoever says more is not believed.
const (
	// MaxCapacity is the most slots of a node, and the most that it may queue beyond them.
	MaxCapacity = task.MaxSlots
	// MaxClasses is how many classes one node has handlers for.
	MaxClasses = 4096

	maxHeld    = 2*MaxCapacity + MaxClasses // running, or queued; some room for what is abandoned
	maxCPUs    = 1_000_000
	maxMemory  = 1 << 60 // bytes
	maxTurn    = 1 << 60 // what is counted on from it is a number, too
	maxAhead   = 24 * time.Hour
	maxKeyShow = 40
)

// Validate says, in words for people, what a heartbeat says that cannot be, or nothing; now is the reader's time in epoch ms. A node that
// talks nonsense is alive all the same, but must get no work: what else it says means nothing either. Check is for who writes a heartbeat.
func Validate(n *Node, now int64) string {
	if n.ID == "" {
		return "it has no id"
	}
	return cmp.Or(oddNumber(n, now), oddClasses(n), oddLabels(n.Labels))
}

func oddNumber(n *Node, now int64) string {
	for _, v := range [...]struct {
		name        string
		value, most int64
	}{
		{"capacity", int64(n.Capacity), MaxCapacity},
		{"prefetch", int64(n.Prefetch), MaxCapacity},
		{"running", int64(n.Running), maxHeld},
		{"queued", int64(n.Queued), maxHeld},
		{"slotsRunning", int64(n.SlotsRunning), maxHeld},
		{"slotsQueued", int64(n.SlotsQueued), maxHeld},
		{"counter", n.Counter, math.MaxInt64},
		{"received", n.Received, math.MaxInt64},
		{"finished", n.Finished, math.MaxInt64},
		{"term", n.Term, math.MaxInt64},
		{"turn", n.RoundRobinCount, maxTurn},
		{"partition", int64(n.Partition), math.MaxInt32},
		{"protocol", int64(n.Protocol), math.MaxInt32},
		{"cpus", int64(n.CPUs), maxCPUs},
		{"memory", n.Memory, maxMemory},
		{"memoryTotal", n.MemoryTotal, maxMemory},
		{"startedAt", n.StartedAt, math.MaxInt64},
	} {
		switch {
		case v.value < 0:
			return fmt.Sprintf("its %s is %d, which cannot be below 0", v.name, v.value)
		case v.value > v.most:
			return fmt.Sprintf("its %s is %d, which cannot be above %d", v.name, v.value, v.most)
		}
	}
	switch {
	case !(n.CPU >= 0 && n.CPU <= maxCPUs): // or not a number
		return fmt.Sprintf("its cpu is %v, which must be from 0 to %d cores", n.CPU, maxCPUs)
	case n.StartedAt-now > maxAhead.Milliseconds():
		return fmt.Sprintf("its startedAt is %s, more than %s ahead of the clock here", time.UnixMilli(n.StartedAt).UTC().Format(time.RFC3339), maxAhead)
	}
	return ""
}

func oddClasses(n *Node) string {
	if len(n.Classes) > MaxClasses {
		return fmt.Sprintf("it has %d classes, %d at most are possible", len(n.Classes), MaxClasses)
	}
	for _, class := range n.Classes {
		if class == "" || len(class) > task.MaxClassBytes {
			return fmt.Sprintf("one of its classes is %.*q with %d bytes, 1 to %d are possible", maxKeyShow, class, len(class), task.MaxClassBytes)
		}
	}
	for _, by := range [...]struct {
		name   string
		counts map[string]int
		most   int
	}{{"capacityByClass", n.CapacityByClass, MaxCapacity}, {"runningByClass", n.RunningByClass, maxHeld}} {
		if len(by.counts) > MaxClasses {
			return fmt.Sprintf("its %s has %d classes, %d at most are possible", by.name, len(by.counts), MaxClasses)
		}
		for _, class := range slices.Sorted(maps.Keys(by.counts)) {
			switch slots := by.counts[class]; {
			case len(class) > task.MaxClassBytes:
				return fmt.Sprintf("its %s has the class %.*q with %d bytes, %d at most are possible", by.name, maxKeyShow, class, len(class), task.MaxClassBytes)
			case slots < 0 || slots > by.most:
				return fmt.Sprintf("its %s of %.*q is %d, which must be from 0 to %d", by.name, maxKeyShow, class, slots, by.most)
			}
		}
	}
	return ""
}

func oddLabels(labels map[string]string) string {
	if len(labels) > task.MaxLabels {
		return fmt.Sprintf("it has %d labels, %d at most are possible", len(labels), task.MaxLabels)
	}
	const most = task.MaxPrefixBytes + len("/") + task.MaxLabelBytes
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[key]; {
		case len(key) > most:
			return fmt.Sprintf("it has a label whose key, %.*q, has %d bytes, %d at most are possible", maxKeyShow, key, len(key), most)
		case len(value) > task.MaxLabelBytes:
			return fmt.Sprintf("its label %.*q has a value of %d bytes, %d at most are possible", maxKeyShow, key, len(value), task.MaxLabelBytes)
		}
	}
	return ""
}
