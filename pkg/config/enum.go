package config

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
)

// enum is a word from a short list.
type enum interface {
	~string
	words() []string
}

// setEnum takes the word of the list that text is, without regard to case, and
// with hyphen and underscore taken for each other.
func setEnum[E enum](dst *E, text string) error {
	for _, word := range (*dst).words() {
		if fold(word) == fold(text) {
			*dst = E(word)
			return nil
		}
	}
	return wantOneOf(*dst)
}

func checkEnum[E enum](value E) error {
	if slices.Contains(value.words(), string(value)) {
		return nil
	}
	return wantOneOf(value)
}

func wantOneOf[E enum](value E) error {
	return errors.New("one of " + strings.Join(value.words(), ", "))
}

func fold(word string) string {
	return strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
}

// ControllerMode says which of its parts a controller process runs.
type ControllerMode string

// The modes of a controller: each does what the one before it does, and more.
const (
	ModeController ControllerMode = "CONTROLLER" // the API only
	ModeMonitor    ControllerMode = "MONITOR"    // the API and the monitor
	ModeDispatcher ControllerMode = "DISPATCHER" // all of it
)

// Set takes the text's value.
func (m *ControllerMode) Set(text string) error { return setEnum(m, text) }
func (m ControllerMode) check() error           { return checkEnum(m) }
func (m ControllerMode) words() []string {
	return []string{string(ModeController), string(ModeMonitor), string(ModeDispatcher)}
}

// StoreKind says where the controller keeps the tasks.
type StoreKind string

// The stores.
const (
	StoreMongo  StoreKind = "mongo"  // MongoDB
	StoreMemory StoreKind = "memory" // this process only: all is gone when it ends
	StoreSQLite StoreKind = "sqlite" // one file on this machine, for one controller
)

// Set takes the text's value.
func (s *StoreKind) Set(text string) error { return setEnum(s, text) }
func (s StoreKind) check() error           { return checkEnum(s) }
func (s StoreKind) words() []string {
	return []string{string(StoreMongo), string(StoreMemory), string(StoreSQLite)}
}

// SQLiteSync says what an acknowledged write into the file of STORE=sqlite outlives.
type SQLiteSync string

// The values.
const (
	SQLiteSyncFull   SQLiteSync = "full"   // a power cut
	SQLiteSyncNormal SQLiteSync = "normal" // the end of the process, but not a power cut
)

// Set takes the text's value.
func (s *SQLiteSync) Set(text string) error { return setEnum(s, text) }
func (s SQLiteSync) check() error           { return checkEnum(s) }
func (s SQLiteSync) words() []string {
	return []string{string(SQLiteSyncFull), string(SQLiteSyncNormal)}
}

// NodeMode says where the tasks of a node come from.
type NodeMode string

// The modes of a node.
const (
	NodeModeNode NodeMode = "node" // runs what the controller assigns
	NodeModeEdge NodeMode = "edge" // runs tasks of its own and only reports them
)

// Set takes the text's value.
func (m *NodeMode) Set(text string) error { return setEnum(m, text) }
func (m NodeMode) check() error           { return checkEnum(m) }
func (m NodeMode) words() []string        { return []string{string(NodeModeNode), string(NodeModeEdge)} }

// SASLMechanism is how a client of Kafka proves who it is. Empty means plain
// when there is a user name, and none otherwise.
type SASLMechanism string

// The mechanisms.
const (
	SASLNone        SASLMechanism = "none"
	SASLPlain       SASLMechanism = "plain"
	SASLScramSHA256 SASLMechanism = "scram-sha-256"
	SASLScramSHA512 SASLMechanism = "scram-sha-512"
)

// Set takes the text's value.
func (m *SASLMechanism) Set(text string) error { return setEnum(m, text) }
func (m SASLMechanism) check() error {
	if m == "" {
		return nil
	}
	return checkEnum(m)
}
func (m SASLMechanism) words() []string {
	return []string{string(SASLNone), string(SASLPlain), string(SASLScramSHA256), string(SASLScramSHA512)}
}

// LogLevel is the lowest level that a process logs.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn" // also read from warning
	LogError LogLevel = "error"
)

// Set takes the text's value.
func (l *LogLevel) Set(text string) error {
	if fold(text) == "WARNING" {
		text = string(LogWarn)
	}
	return setEnum(l, text)
}

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
func (l LogLevel) check() error { return checkEnum(l) }
func (l LogLevel) words() []string {
	return []string{string(LogDebug), string(LogInfo), string(LogWarn), string(LogError)}
}
