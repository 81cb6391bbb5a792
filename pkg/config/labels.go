package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

// Labels are what a node says of itself, for the label selectors of tasks. Keys
// and values have the syntax that package task gives them, that of Kubernetes
// labels; there are at most [task.MaxLabels].
type Labels map[string]string

// Set reads key=value pairs divided by commas. Spaces around a pair are
// dropped; a key that stands there twice is an error.
func (l *Labels) Set(text string) error {
	labels := Labels{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if !found {
			return fmt.Errorf("labels such as zone=a,gpu=true (%q has no =)", shorten(pair))
		}
		if _, twice := labels[key]; twice {
			return fmt.Errorf("each label once (%q stands there twice)", shorten(key))
		}
		labels[key] = value
	}
	*l = labels
	return labels.check()
}

// String returns the text that Set reads, with the keys in order.
func (l Labels) String() string {
	pairs := make([]string, 0, len(l))
	for _, key := range slices.Sorted(maps.Keys(l)) {
		pairs = append(pairs, key+"="+l[key])
	}
	return strings.Join(pairs, ",")
}

func (l Labels) check() error {
	if len(l) > task.MaxLabels {
		return fmt.Errorf("at most %d labels", task.MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		if why := task.BadLabelKey(key); why != "" {
			return fmt.Errorf("labels such as zone=a or example.org/gpu=a100 (the key %q %s)", shorten(key), why)
		}
		if why := task.BadLabelValue(l[key]); why != "" {
			return fmt.Errorf("labels such as zone=a or example.org/gpu=a100 (the value %q of %s %s)", shorten(l[key]), key, why)
		}
	}
	return nil
}
