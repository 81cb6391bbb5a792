package dispatcher

import (
	"cmp"
	"slices"
	"time"
)

// group is lines that a round deals with as one: those that it has to look at, or those that wait for the same. Each known line stands in one.
type group struct {
	until condition // what its lines wait for; zero for those that do not
	lines []*line   // in an order that depends on what has happened alone
	index int       // in lines.waiting
}

// condition is what keeps a line waiting: as long as it keeps one line, it keeps all that wait for it.
type condition struct {
	why    Reason
	of     string // the namespace, class, pool or key; of a reason of placement, the class
	labels string // selector
	anti   string
	n      int // slots; of a key, the limit
}

// until is what the line waits for.
func (l *line) until(why Reason) condition {
	c := condition{why: why}
	switch why {
	case NamespacePaused, NamespaceFull:
		c.of = l.item.Namespace
	case ClassPaused, ClassRateLimited:
		c.of = l.class
	case PoolUnknown, PoolFull:
		c.of = l.pool
	case KeyBusy:
		c.of, c.n = l.key, l.keyLimit
	default:
		c.of, c.labels, c.anti, c.n = l.class, l.request.Selector.String(), l.anti, l.request.Slots
	}
	return c
}

// waits says whether something keeps the line waiting, as of the last look.
func (l *line) waits() bool { return l.in.until.why != "" }

// ofAll says whether a reason keeps all lines waiting. They stay in the order, since the round has nothing more to do.
func ofAll(why Reason) bool { return why == DispatcherPaused || why == RateLimited || why == Throttled }

// park puts a line to those that wait for the same.
func (l *lines) park(x *line, why Reason) {
	until := x.until(why)
	g, ok := l.byCondition[until]
	if !ok {
		g = &group{until: until, index: len(l.waiting)}
		l.waiting = append(l.waiting, g)
		l.byCondition[until] = g
	}
	l.move(x, g)
}

func (l *lines) move(x *line, to *group) {
	if x.in == to {
		return
	}
	if x.in != nil {
		l.leave(x)
	}
	x.in, x.place = to, len(to.lines)
	to.lines = append(to.lines, x)
}

// leave takes a line out of its group. One that nothing waits in any more is forgotten.
func (l *lines) leave(x *line) {
	g := x.in
	last := len(g.lines) - 1
	moved := g.lines[last]
	g.lines[x.place], moved.place = moved, x.place
	g.lines[last] = nil
	g.lines, x.in = g.lines[:last], nil
	if last > 0 || g.until.why == "" {
		return
	}
	delete(l.byCondition, g.until)
	end := len(l.waiting) - 1
	other := l.waiting[end]
	l.waiting[g.index], other.index = other, g.index
	l.waiting[end] = nil
	l.waiting = l.waiting[:end]
}

// stillKeeps says what keeps all of a group waiting, and how long if it is known; empty if its lines are to be asked each for itself.
func (d *Dispatcher) stillKeeps(g *group, now time.Time) (Reason, time.Duration) {
	first := g.lines[0]
	why, wait := d.keeps(first, now)
	if why != "" && !ofAll(why) && first.until(why) != g.until {
		return "", 0
	}
	return why, wait
}

// wake frees the lines of groups that nothing keeps any more, or something else.
func (d *Dispatcher) wake(r *round) {
	for _, g := range slices.Backward(d.lines.waiting) { // from behind, where leave takes what it moves from
		if why, wait := d.stillKeeps(g, r.moment); why != "" {
			r.wait(wait)
			continue
		}
		for len(g.lines) > 0 {
			d.lines.move(g.lines[len(g.lines)-1], &d.lines.free)
		}
	}
}

// counts says how many lines wait for which reason now.
func (d *Dispatcher) counts() map[Reason]int {
	now := d.moment()
	by := make(map[Reason]int)
	each := func(list []*line) {
		for _, l := range list {
			why, _ := d.keeps(l, now)
			by[cmp.Or(why, Ready)]++
		}
	}
	each(d.lines.fresh.lines)
	each(d.lines.free.lines)
	each(d.lines.ordered.lines)
	for _, g := range d.lines.waiting {
		if why, _ := d.stillKeeps(g, now); why != "" {
			by[why] += len(g.lines)
			continue
		}
		each(g.lines)
	}
	return by
}
