package config

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
)

// The types below are words from a short list, which stands in the tag words of their fields. They are read without
// regard to case, and with hyphen and underscore taken for each other.

// ControllerMode says which of its parts a controller process runs.
type ControllerMode string

// The modes of a controller: each does what the one before it does, and more.
const (
	ModeController ControllerMode = "CONTROLLER" // the API only
	ModeMonitor    ControllerMode = "MONITOR"    // the API and the monitor
	ModeDispatcher ControllerMode = "DISPATCHER" // all of it
)

// StoreKind says where the controller keeps the tasks.
type StoreKind string

// The stores.
const (
	StoreMongo  StoreKind = "mongo"  // MongoDB
	StoreMemory StoreKind = "memory" // this process only: all is gone when it ends
	StoreSQLite StoreKind = "sqlite" // one file on this machine, for one controller
)

// SQLiteSync says what an acknowledged write into the file of STORE=sqlite outlives.
type SQLiteSync string

// The values.
const (
	SQLiteSyncFull   SQLiteSync = "full"   // a power cut
	SQLiteSyncNormal SQLiteSync = "normal" // the end of the process, but not a power cut
)

// PriorityMode says how priorities share the nodes.
type PriorityMode string

// The modes.
const (
	PriorityStrict   PriorityMode = "strict"   // nothing of a lower priority runs while something of a higher one could
	PriorityWeighted PriorityMode = "weighted" // priority p gets a share of p+1
)

// SASLMechanism is how a client of Kafka proves who it is. Empty means plain when there is a user name, and none
// otherwise.
type SASLMechanism string

// The mechanisms.
const (
	SASLNone        SASLMechanism = "none"
	SASLPlain       SASLMechanism = "plain"
	SASLScramSHA256 SASLMechanism = "scram-sha-256"
	SASLScramSHA512 SASLMechanism = "scram-sha-512"
)

// LogLevel is the lowest level that a process logs.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn" // also read from warning
	LogError LogLevel = "error"
)

// Slog returns the level for log/slog; info for a level that is not of the list.
func (l LogLevel) Slog() slog.Level {
	switch l {
	case LogDebug:
		return slog.LevelDebug
	case LogWarn:
		return slog.LevelWarn
	case LogError:
		return slog.LevelError
	case LogInfo:
	}
	return slog.LevelInfo
}

// NodeMode says where the tasks of a node come from.
type NodeMode string

// NodeModeNode runs what the controller assigns. The Python Skalds has other modes, which do not exist here.
const NodeModeNode NodeMode = "node"

// Set takes the text's value.
func (m *NodeMode) Set(text string) error {
	if fold(text) != fold(string(NodeModeNode)) {
		return errors.New("node: the modes edge and single_process do not exist yet")
	}
	*m = NodeModeNode
	return nil
}

func (m NodeMode) check() error { return m.Set(string(m)) }

// word returns the word of the field's list that text is.
func (f field) word(text string) (string, bool) {
	if _, ok := reflect.TypeAssert[LogLevel](f.value); ok && fold(text) == "WARNING" {
		text = string(LogWarn)
	}
	for word := range strings.SplitSeq(f.words, ",") {
		if fold(word) == fold(text) {
			return word, true
		}
	}
	return "", false
}

func (f field) wantWord() string { return "one of " + strings.ReplaceAll(f.words, ",", ", ") }

func fold(word string) string {
	return strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
}
