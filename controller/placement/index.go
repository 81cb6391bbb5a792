package placement

import (
	"slices"

	"github.com/skalds-go/skalds/pkg/task"
)

// feature is a property by which nodes are looked up: a label (key and value), or a class (no key).
type feature struct{ key, value string }

// index lists the nodes of each feature.
type index map[feature][]int32

func (x index) add(n *node, i int32) {
	for f := range n.features {
		x[f] = append(x[f], i)
	}
}

func (x index) remove(n *node, i int32) {
	for f := range n.features {
		list := x[f]
		if len(list) == 1 {
			delete(x, f)
			continue
		}
		at := slices.Index(list, i)
		list[at] = list[len(list)-1]
		x[f] = list[:len(list)-1]
	}
}

// features yields each feature of a node once.
func (n *node) features(yield func(feature) bool) {
	for i, class := range n.classes {
		if !slices.Contains(n.classes[:i], class) && !yield(feature{value: class}) {
			return
		}
	}
	for key, value := range n.labels {
		if !yield(feature{key, value}) {
			return
		}
	}
}

// candidates yields a superset of the nodes that match a class and a selector: the nodes of the rarest feature that
// they require. It returns their number. A nil yield only counts.
func (x index) candidates(class string, s task.Selector, yield func(int32)) int {
	fewest := len(x[feature{value: class}])
	rarest, among := "", []string{class}
	for key, values := range s.In() {
		total := 0
		for _, v := range values {
			total += len(x[feature{key, v}])
		}
		if total < fewest {
			fewest, rarest, among = total, key, values
		}
	}
	if yield != nil {
		for _, v := range among {
			for _, i := range x[feature{rarest, v}] {
				yield(i)
			}
		}
	}
	return fewest
}
