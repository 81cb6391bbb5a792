package main

import (
	"context"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/loop"
)

// driver runs loops of a process as threads of the world.
type driver struct{ process *process }

var _ loop.Driver = driver{}

// Boot implements [loop.Driver].
func (d driver) Boot() time.Duration { return d.process.clock.Boot() }

// Go implements [loop.Driver].
func (d driver) Go(name string, f func()) { d.process.spawn(name, f) }

// Wait implements [loop.Driver]. Of several wakes that have fired, the seed chooses.
func (d driver) Wait(ctx context.Context, pause time.Duration, wakes ...loop.Wake) (by loop.Wake) {
	w, until := d.process.world, never
	if pause >= 0 {
		until = d.process.clock.at(d.process.clock.Boot() + pause)
	}
	order := slices.Clone(wakes)
	if len(order) > 1 {
		w.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	w.park(until, func() bool {
		for _, wake := range order {
			if wake != nil && wake.Take() {
				by = wake
				return true
			}
		}
		return ctx.Err() != nil
	})
	return by
}

// runner runs loops of the process. Pauses after failures are drawn from the seed.
func (p *process) runner() loop.Runner {
	return loop.Runner{Driver: driver{p}, Log: quiet, Jitter: p.world.rng.Float64}
}
