package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxLabels bounds how many labels a node may carry.
const maxLabels = 64

// Labels are what a node says of itself, for the label selectors of tasks. Keys
// and values have the syntax of Kubernetes labels: a key is a name of 1 to 63
// characters, with an optional DNS prefix of at most 253 and a slash before
// it; a value is empty or of 1 to 63 characters.
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

var (
	labelName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelPrefix = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

func (l Labels) check() error {
	if len(l) > maxLabels {
		return fmt.Errorf("at most %d labels", maxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		if err := checkLabelKey(key); err != nil {
			return err
		}
		if value := l[key]; value != "" && !labelName.MatchString(value) {
			return fmt.Errorf("label values that are empty or of 1 to 63 letters, digits, dots, underscores and hyphens, "+
				"with a letter or digit at both ends (%q of %q is not)", shorten(value), shorten(key))
		}
	}
	return nil
}

func checkLabelKey(key string) error {
	name := key
	if prefix, rest, found := strings.Cut(key, "/"); found {
		name = rest
		if len(prefix) > 253 || !labelPrefix.MatchString(prefix) {
			return fmt.Errorf("label keys whose prefix is a DNS name of at most 253 lower case characters (%q is not)", shorten(prefix))
		}
	}
	if name == "" {
		return errors.New("label keys that are not empty")
	}
	if !labelName.MatchString(name) {
		return fmt.Errorf("label keys of 1 to 63 letters, digits, dots, underscores and hyphens, "+
			"with a letter or digit at both ends (%q is not)", shorten(name))
	}
	return nil
}
