package session

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Pauses between measures.
const (
	cpuEvery    = 100 * time.Millisecond // a shorter time would show the steps of the scheduler, not the load
	memoryEvery = time.Minute            // the limit of a cgroup seldom changes
)

// reading is what a heartbeat says about the process and what it may use.
type reading struct {
	cpu         float64 // cores used, averaged since the last reading
	memory      int64   // bytes that the Go runtime holds
	cpus        int     // cores that Go uses at most: those of the machine, fewer if affinity, cgroup or GOMAXPROCS say so
	memoryTotal int64   // bytes: of the machine, less if the cgroup says so; 0 = unknown
}

// usage takes readings. It is not safe for concurrent use.
type usage struct {
	load func() float64 // replaces what the machine says: the used part of one core; nil = the machine

	at, cpu time.Duration // at the last measure
	cores   float64       // used between the last two measures

	totalAt time.Duration
	total   int64
}

func (u *usage) read(boot time.Duration) reading {
	if u.load != nil {
		return reading{cpu: u.load(), cpus: 1}
	}
	if u.totalAt == 0 || boot-u.totalAt >= memoryEvery {
		u.totalAt, u.total = boot, memoryTotal()
	}
	return reading{u.measure(boot), memoryHeld(), runtime.GOMAXPROCS(0), u.total}
}

// measure returns the cores that were used since the last measure.
func (u *usage) measure(boot time.Duration) float64 {
	passed := boot - u.at
	if u.at > 0 && passed < cpuEvery {
		return u.cores
	}
	cpu := cpuTime()
	if u.at > 0 {
		u.cores = float64(max(cpu-u.cpu, 0)) / float64(passed)
	}
	u.at, u.cpu = boot, cpu
	return u.cores
}

func memoryHeld() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return max(int64(samples[0].Value.Uint64())-int64(samples[1].Value.Uint64()), 0)
}
