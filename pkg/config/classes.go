package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

// Limits of ClassCapacities.
const (
	maxClassEntries  = 256
	maxClassCapacity = 100_000
)

const wantClasses = "classes with numbers from 1 to 100000, such as resize:4,train:1"

// ClassCapacities is how many slots of a node the tasks of a class take at the
// most, by class. A class without an entry may take all of the node's capacity,
// and so may one whose entry is larger than that.
type ClassCapacities map[string]int

// Set reads class:number pairs divided by commas. Spaces around a pair are
// dropped; a class that stands there twice is an error. A class may hold colons,
// but no comma: one that does is only to be set in a program.
func (c *ClassCapacities) Set(text string) error {
	capacities := ClassCapacities{}
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		colon := strings.LastIndexByte(pair, ':')
		if colon < 0 {
			return fmt.Errorf("%s (%q has no colon)", wantClasses, shorten(pair))
		}
		class := pair[:colon]
		var slots number
		if err := slots.Set(pair[colon+1:]); err != nil {
			return fmt.Errorf("%s (%q of %q is no such number)", wantClasses, shorten(pair[colon+1:]), shorten(class))
		}
		if _, twice := capacities[class]; twice {
			return fmt.Errorf("each class once (%q stands there twice)", shorten(class))
		}
		capacities[class] = int(slots)
	}
	*c = capacities
	return capacities.check()
}

// String returns the text that Set reads, with the classes in order.
func (c ClassCapacities) String() string {
	pairs := make([]string, 0, len(c))
	for _, class := range slices.Sorted(maps.Keys(c)) {
		pairs = append(pairs, class+":"+strconv.Itoa(c[class]))
	}
	return strings.Join(pairs, ",")
}

func (c ClassCapacities) check() error {
	if len(c) > maxClassEntries {
		return fmt.Errorf("at most %d classes", maxClassEntries)
	}
	for _, class := range slices.Sorted(maps.Keys(c)) {
		switch slots := c[class]; {
		case class == "" || len(class) > task.MaxClassBytes:
			return fmt.Errorf("%s, where a class has 1 to %d bytes (%q has %d)", wantClasses, task.MaxClassBytes, shorten(class), len(class))
		case slots < 1 || slots > maxClassCapacity:
			return fmt.Errorf("%s (%q has %d)", wantClasses, shorten(class), slots)
		}
	}
	return nil
}
