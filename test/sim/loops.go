package main

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
)

// hear has heartbeats taken in, and once it is known from where, reports.
func (l *leadership) hear() {
	l.listen("confirm", l.confirm)
	early, stop := context.WithCancel(l.listening)
	l.listen("overhear", func() {
		l.grow(early, 0, func(p int) {
			l.listen("overhear", func() { l.service.Overhear(early, p, kafka.Latest()) })
		})
	})
	l.world.park(never, func() bool { return l.deaf() || l.service.Loaded() })
	if stop(); l.deaf() {
		return
	}
	starts := l.service.Starts()
	for p := range len(starts) {
		l.listen("read status", func() { l.read(p, starts[p]) })
	}
	l.listen("grow", func() {
		l.grow(l.listening, len(starts), func(p int) { l.listen("read status", func() { l.read(p, kafka.Earliest()) }) })
	})
	l.takeIn()
}

func (l *leadership) read(p int, from kafka.Position) {
	r := l.bus().Reader(events.TopicStatus, p, from)
	for {
		records, err := r.Next(l.listening)
		if err != nil {
			return
		}
		l.service.Hear(records)
		l.batches = append(l.batches, batch{p, records, r.Position()})
		handed := func() bool { return l.deaf() || len(l.batches) == 0 }
		if l.world.rest(250*time.Millisecond, handed); !handed() {
			l.ahead(p, r.Position(), handed)
		}
	}
}

// ahead looks for heartbeats behind what ingest is too busy to take, until it has been handed over.
func (l *leadership) ahead(p int, from kafka.Position, handed func() bool) {
	ctx, stop := context.WithCancel(l.listening)
	over := false
	l.listen("ahead", func() {
		l.service.Overhear(ctx, p, from)
		over = true
	})
	l.world.park(never, handed)
	stop()
	l.world.park(never, func() bool { return over })
}

// grow is the loop that finds partitions beside those that are read.
func (l *leadership) grow(ctx context.Context, have int, read func(p int)) {
	for over := func() bool { return ctx.Err() != nil }; !over(); l.world.rest(2*time.Second, over) {
		have = l.service.Grow(ctx, have, read)
	}
}

// confirm is the loop that confirms heartbeats which came over the bus.
func (l *leadership) confirm() {
	for !l.deaf() {
		l.world.park(never, func() bool { return l.deaf() || l.service.ConfirmWanted() })
		if l.deaf() {
			return
		}
		if err := l.service.Confirm(l.listening); err != nil {
			l.world.note(l.process.name, " confirm: %v", err)
		}
	}
}

// takeIn is ingest's loop.
func (l *leadership) takeIn() {
	w, c := l.world, l.process.clock
	settleAt, saveAt := never, never
	for !l.deaf() {
		w.park(min(settleAt, saveAt), func() bool { return l.deaf() || len(l.batches) > 0 })
		switch {
		case l.deaf():
		case len(l.batches) > 0:
			if !l.take() {
				break
			}
			settleAt = min(settleAt, c.at(c.Boot()+50*time.Millisecond))
			saveAt = min(saveAt, c.at(c.Boot()+time.Second))
		case w.now >= settleAt:
			settleAt = never
			if err := l.service.Acknowledge(l.listening); err != nil {
				w.note(l.process.name, " settle: %v", err)
			}
		case w.now >= saveAt:
			saveAt = never
			l.service.Save(l.listening)
		}
	}
	l.service.End(l.listening)
}

func (l *leadership) take() bool {
	var records []kafka.Record
	after := map[int]kafka.Position{}
	for _, b := range l.batches {
		records = append(records, b.records...)
		after[b.partition] = b.after
	}
	l.batches = nil
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := l.service.Round(l.listening, records, after)
		if err == nil {
			return true
		}
		l.world.note(l.process.name, " ingest: %v", err)
		if l.world.rest(pause, l.deaf); l.deaf() {
			return false
		}
	}
}

// watch is the monitor's loop.
func (l *leadership) watch() {
	w, c := l.world, l.process.clock
	next := w.now
	for !l.over() {
		var woken, wished bool
		w.park(next, func() bool {
			woken = taken(l.nodes)
			wished = !woken && taken(l.wishes)
			return l.over() || woken || wished
		})
		if l.over() {
			return
		}
		if wished {
			if err := l.monitor.Desired(l.acting); err != nil {
				w.note(l.process.name, " wishes: %v", err)
			}
			l.rest(10 * time.Millisecond)
			continue
		}
		soon, err := l.monitor.Round(l.acting)
		if err != nil {
			w.note(l.process.name, " monitor: %v", err)
		}
		wait := l.cfg.watch
		if soon {
			wait = 20 * time.Millisecond
		}
		next = c.at(c.Boot() + wait)
	}
}

// place is the dispatcher's loop.
func (l *leadership) place() {
	w, c := l.world, l.process.clock
	next, due, pause := w.now, c.Boot(), time.Duration(0)
	for !l.over() {
		list := false
		w.park(next, func() bool { list = list || taken(l.work); return list || taken(l.room) || l.over() })
		failed, wait := false, time.Duration(0)
		for more := true; more && !l.over(); {
			if now := c.Boot(); now >= due {
				list, due = true, now+l.cfg.interval
			}
			l.goesBy = l.told
			out, err := l.dispatcher.Round(l.acting, list)
			list, wait = false, out.Next
			failed = err != nil || out.Failed > 0
			more = out.More && !failed
			if !failed {
				if out.Placed > 0 {
					pause = 0
				}
				continue
			}
			w.note(l.process.name, " dispatch: %d failed, %v", out.Failed, err)
			pause = min(max(2*pause, 50*time.Millisecond), 2*time.Second)
		}
		if failed {
			l.rest(pause)
			l.work.Signal()
		}
		until := max(due-c.Boot(), 0)
		if wait > 0 {
			until = min(until, wait)
		}
		next = c.at(c.Boot() + until)
	}
}

// followEvery is the time between two looks at the settings, recallEvery that between two recalls of what is paused and has not begun.
const (
	followEvery = 500 * time.Millisecond
	recallEvery = 500 * time.Millisecond
)

// use takes over settings.
func (l *leadership) use(d store.Dispatcher) {
	l.told = max(l.told, d.Version)
	if l.dispatcher.Use(d) {
		l.room.Signal()
		l.recallNow.Signal()
	}
}

func (l *leadership) follow(ctx context.Context) error {
	d, err := l.store(roleLeader).Dispatcher(ctx)
	if err != nil {
		return err
	}
	l.use(d)
	return nil
}

// keepFollowing is the loop that takes over what other controllers have changed.
func (l *leadership) keepFollowing() {
	for l.rest(followEvery) {
		if err := l.follow(l.acting); err != nil {
			l.world.note(l.process.name, " settings: %v", err)
		}
	}
}

// recall is the loop that calls back what is paused and has not begun.
func (l *leadership) recall() {
	w, c := l.world, l.process.clock
	for !l.over() {
		w.park(c.at(c.Boot()+recallEvery), func() bool { return l.over() || taken(l.recallNow) })
		if claims := l.dispatcher.Recallable(); len(claims) > 0 && !l.over() {
			if err := l.monitor.Recall(l.acting, claims); err != nil {
				w.note(l.process.name, " recall: %v", err)
			}
		}
	}
}

// keepTimes is the agenda's loop.
func (l *leadership) keepTimes() {
	w, c := l.world, l.process.clock
	next := w.now
	for !l.over() {
		w.park(next, func() bool { return l.over() || taken(l.times) })
		if l.over() {
			return
		}
		at, err := l.agenda.Round(l.acting)
		wait := 5 * time.Second
		switch {
		case err != nil:
			w.note(l.process.name, " agenda: %v", err)
			wait = 500 * time.Millisecond
		case at > 0:
			wait = min(wait, max(time.UnixMilli(at).Sub(c.Now()), 10*time.Millisecond))
		}
		next = c.at(c.Boot() + wait)
	}
}
