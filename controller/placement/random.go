package placement

import "slices"

var random = definition{
	name:   Random,
	choose: func(s *stage) chooser { return &drawing{stage: s, of: 1} },
	score: func(*scan) (rank, func(n *node) string) {
		return func(*node) float64 { return 0 }, func(*node) string { return "as likely as the others" }
	},
}

// drawing is the chooser of strategies that pick at random. Its list may hold nodes that do not fit any more. They are
// removed when they are drawn, so that all nodes that fit stay equally likely.
type drawing struct {
	*stage
	of   int // the number of different nodes to draw; the one with the lowest ratio is picked
	list []int32
}

func (d *drawing) bit() uint8 { return inStage << d.kind }

func (d *drawing) add(i int32) {
	bits := d.p.members.get(i)
	if bits&d.bit() != 0 || !d.fits(&d.c.nodes[i]) {
		return
	}
	d.p.members.set(i, bits|d.bit())
	d.list = append(d.list, i)
}

func (d *drawing) drop(int32) {} // the node is removed when it is drawn

// fitting reports whether a node in the list fits. If it does not, fitting clears its flag and the caller must remove
// it.
func (d *drawing) fitting(i int32) bool {
	bits := d.p.members.get(i)
	if bits&isAble != 0 && d.fits(&d.c.nodes[i]) {
		return true
	}
	d.p.members.set(i, bits&^d.bit())
	return false
}

// removeAt removes the node at an index from the list.
func (d *drawing) removeAt(at int) {
	last := len(d.list) - 1
	d.list[at] = d.list[last]
	d.list = d.list[:last]
}

func (d *drawing) pick(*Request) int32 {
	best := int32(-1)
	drawn, end := 0, len(d.list) // nodes from end on were drawn already
	for drawn < d.of && end > 0 {
		at := d.c.rng.IntN(end)
		i := d.list[at]
		end--
		d.list[at], d.list[end] = d.list[end], i
		if !d.fitting(i) {
			d.removeAt(end)
			continue
		}
		if n := &d.c.nodes[i]; !d.c.excluded(n) {
			drawn++
			if best < 0 || lighter(n, &d.c.nodes[best]) {
				best = i
			}
		}
	}
	return best
}

// lighter reports whether a has a lower ratio than b, or the same and was picked longer ago.
func lighter(a, b *node) bool {
	if x, y := a.ratio(), b.ratio(); x != y {
		return x < y
	}
	return a.last < b.last
}

func (d *drawing) any() bool {
	for at, i := range slices.Backward(d.list) {
		switch {
		case !d.fitting(i):
			d.removeAt(at)
		case !d.c.excluded(&d.c.nodes[i]):
			return true
		}
	}
	return false
}
