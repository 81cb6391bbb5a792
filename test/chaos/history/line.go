// Package history is what chaos tests know of the runs of tasks: what handlers wrote down, what the test did to their
// processes, and the rules that both, and the tasks in the store, must fulfil.
//
// All times are of CLOCK_BOOTTIME, which all processes of a machine share. A line is one write to a file that is open
// for appending: of a process that is killed it is there or not, and never in part.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

// Line is the start or the end of a run, as a handler wrote it.
type Line struct {
	Event   Event         `json:"event"`
	Task    string        `json:"task"`
	Attempt int64         `json:"attempt"`
	PID     int           `json:"pid"`
	Boot    time.Duration `json:"boot"`
	Cause   string        `json:"cause,omitempty"` // why the run's context had ended when the run did; empty = it had not
}

// Event says what a line is about.
type Event string

// The events.
const (
	Started  Event = "started"
	Finished Event = "finished" // with a result
	Stopped  Event = "stopped"  // without one, because the context had ended
)

// Log is where the handlers of one process write.
type Log struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens the log of this process in a directory.
func Open(dir string) (*Log, error) {
	path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", os.Getpid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of runs: %w", err)
	}
	return &Log{file: file}, nil
}

// Write adds a line, with this process' id and the present time.
func (l *Log) Write(line Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line.PID, line.Boot = os.Getpid(), clock.System{}.Boot()
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a line of the log of runs: %w", err)
	}
	if _, err := l.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the log of runs: %w", err)
	}
	return nil
}

// Read reads the lines of all logs in a directory, those of one log in their order. A last line that is being written
// is left out.
func Read(dir string) ([]Line, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("look for logs of runs: %w", err)
	}
	var lines []Line
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a log of runs: %w", err)
		}
		more, err := decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("log of runs %s: %w", filepath.Base(path), err)
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func decode(r io.Reader) ([]Line, error) {
	var lines []Line
	for in := bufio.NewReader(r); ; {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		var line Line
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("line %q: %w", text, err)
		}
		lines = append(lines, line)
	}
}
