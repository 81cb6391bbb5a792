package task

import (
	"fmt"
	"strings"
)

// Limits of the labels of a node.
const (
	MaxLabels      = 64  // on one node
	MaxLabelBytes  = 63  // of a label's value, and of its key after the prefix
	MaxPrefixBytes = 253 // of a label key's prefix
)

// BadLabelKey returns why a text cannot be the key of a label; empty if it can. The syntax is that of Kubernetes: a
// name of letters and digits, with '-', '_' and '.' between them, after an optional prefix, which is a DNS name in
// lower case and a slash.
func BadLabelKey(key string) string {
	prefix, name, both := strings.Cut(key, "/")
	if !both {
		prefix, name = "", key
	}
	switch {
	case both && (prefix == "" || len(prefix) > MaxPrefixBytes):
		return fmt.Sprintf("has a prefix that must have 1 to %d bytes", MaxPrefixBytes)
	case name == "":
		return "must not be empty"
	case both && !isDNSName(prefix):
		return "has a prefix that must be a DNS name in lower case"
	}
	return badName(name)
}

// BadLabelValue returns why a text cannot be the value of a label; empty if it can. A value is empty or has the syntax
// of a key's name.
func BadLabelValue(value string) string {
	if value == "" {
		return ""
	}
	return badName(value)
}

func badName(s string) string {
	if len(s) > MaxLabelBytes {
		return fmt.Sprintf("has %d bytes, %d at most", len(s), MaxLabelBytes)
	}
	for i := range len(s) {
		if c := s[i]; !lowerOrDigit(c) && (c < 'A' || c > 'Z') && (i == 0 || i == len(s)-1 || strings.IndexByte("-_.", c) < 0) {
			return "must be letters, digits, and between them '-', '_' or '.'"
		}
	}
	return ""
}

func isDNSName(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !lowerOrDigit(c) && (c != '-' || i == 0 || i == len(part)-1) {
				return false
			}
		}
	}
	return true
}

func lowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
