package node

import (
	"runtime/metrics"
	"time"
)

// usage measures what the process uses.
type usage struct {
	at, cpu time.Duration // at the last measure
}

// measure gives the cores used since the last call, and the bytes that the Go runtime holds.
func (u *usage) measure(boot time.Duration) (cores float64, memory int64) {
	cpu := cpuTime()
	if passed := boot - u.at; u.at > 0 && passed > 0 {
		cores = float64(cpu-u.cpu) / float64(passed)
	}
	u.at, u.cpu = boot, cpu
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	for i, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return cores, 0
		}
		v := int64(s.Value.Uint64())
		if i > 0 {
			v = -v
		}
		memory += v
	}
	return cores, memory
}
