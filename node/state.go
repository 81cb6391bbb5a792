package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// state is the file in SKALD_STATE_DIR by which a node proves that its predecessor is dead. The process holds the exclusive lock on it for as
// long as it lives, and so does every child that inherits the descriptor. The file names the incarnation that last registered, and the
// boot of the machine. Whoever gets the lock under the same boot knows: that incarnation runs no more, and neither does a child of it.
type state struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	file   lockedFile
	locked bool
	boot   string // names this boot of the machine
}

// lockedFile is what the operating system does.
type lockedFile interface {
	// tryLock takes the lock. It reports false if somebody else holds it.
	tryLock() (bool, error)
	read() ([]byte, error)
	write(b []byte) error
	close() error
}

// record is what the file says.
type record struct {
	Incarnation string `json:"incarnation"`
	Boot        string `json:"boot"`
	Stopping    bool   `json:"stopping,omitempty"` // it was told to stop: its death is nobody's crash
}

// dead is an incarnation that is known to run no more.
type dead struct {
	incarnation string
	crashed     bool // its process died though nobody had told it to stop
}

// errNoProof says that a file proves nothing here.
var errNoProof = errors.New("no proof of a dead predecessor is possible")

// openState opens the node's file; nil without a directory, and where a lock proves nothing.
func openState(dir, id string, log *slog.Logger) (*state, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // a nil state is one that proves nothing
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the directory that the operator names
		return nil, fmt.Errorf("node: SKALD_STATE_DIR: %w", err)
	}
	s := &state{path: filepath.Join(dir, id+".lock"), log: log}
	var err error
	s.file, s.boot, err = openLockedFile(s.path)
	if errors.Is(err, errNoProof) {
		log.Warn("SKALD_STATE_DIR is of no use here: after a crash this node waits until its predecessor is given away", "path", s.path, "reason", err)
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("node: SKALD_STATE_DIR: %s: %w", s.path, err)
	}
	return s, nil
}

// lock takes the lock, if nobody holds it. At the moment at which it gets it, it gives the incarnation that is dead by that, if the file
// names one.
func (s *state) lock() (dead, bool) {
	if s == nil {
		return dead{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked {
		return dead{}, false
	}
	ok, err := s.file.tryLock()
	if err != nil {
		s.log.Warn("the state file cannot be locked", "path", s.path, "error", err)
	}
	if !ok {
		return dead{}, false
	}
	s.locked = true
	b, err := s.file.read()
	if err != nil {
		s.log.Warn("the state file cannot be read; it proves nothing", "path", s.path, "error", err)
		return dead{}, false
	}
	var r record
	if json.Unmarshal(b, &r) != nil || r.Incarnation == "" || r.Boot != s.boot {
		return dead{}, false // a new file, one that was cut off in its writing, or of an earlier boot
	}
	return dead{r.Incarnation, !r.Stopping}, true
}

// name writes down which incarnation the lock is held for from now on, if it is held.
func (s *state) name(incarnation string, stopping bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked {
		return
	}
	b, err := json.Marshal(record{incarnation, s.boot, stopping})
	if err == nil {
		err = s.file.write(b)
	}
	if err != nil {
		s.log.Warn("the state file cannot be written; a crash of this node will not be proven", "path", s.path, "error", err)
	}
}

// close gives the lock up. Children that have inherited it hold it on.
func (s *state) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.close(); err != nil {
		s.log.Debug("close the state file", "path", s.path, "error", err)
	}
}
