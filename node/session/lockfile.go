package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// lockFile is how a node proves that its predecessor is dead, by a file in SKALD_STATE_DIR. The process holds the
// exclusive lock on it for as long as it lives, and so does every child that inherits the descriptor. The file names
// the incarnation that last registered, and the boot of the machine. Whoever gets the lock under the same boot knows
// that this incarnation has ended, and its children too. (That is why pkg/lockfile does not do: no child inherits its
// lock.) A nil lockFile proves nothing.
type lockFile struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	file   LockFile
	locked bool
}

// record is what the file says.
type record struct {
	Incarnation string `json:"incarnation"`
	Boot        string `json:"boot"`
	Stopping    bool   `json:"stopping,omitempty"` // it was told to stop: its death is nobody's crash
}

// dead is an incarnation that is known to have ended.
type dead struct {
	incarnation string
	crashed     bool // its process died though nobody had told it to stop
}

// errNoProof says that a file proves nothing here.
var errNoProof = errors.New("no proof of a dead predecessor is possible")

// openLockFile opens the node's file. It returns nil without a directory, and where a lock proves nothing.
func openLockFile(cfg *Config) (*lockFile, error) {
	if cfg.Seams.LockFile != nil {
		return &lockFile{log: cfg.Log, file: cfg.Seams.LockFile}, nil
	}
	dir := cfg.Node.StateDir
	if dir == "" {
		return nil, nil //nolint:nilnil // a nil lockFile proves nothing
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the directory that the operator names
		return nil, fmt.Errorf("node: SKALD_STATE_DIR: %w", err)
	}
	f := &lockFile{path: filepath.Join(dir, cfg.Node.ID+".lock"), log: cfg.Log}
	var err error
	f.file, err = openInheritable(f.path)
	if errors.Is(err, errNoProof) {
		f.log.Warn("SKALD_STATE_DIR is of no use here: after a crash this node waits until its predecessor is lost",
			"path", f.path, "reason", err)
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("node: SKALD_STATE_DIR: %s: %w", f.path, err)
	}
	return f, nil
}

// lock takes the lock, if nobody holds it. When it gets the lock, it returns the incarnation that is dead by that, if
// the file names one.
func (f *lockFile) lock() (dead, bool) {
	if f == nil {
		return dead{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locked {
		return dead{}, false
	}
	ok, err := f.file.TryLock()
	if err != nil {
		f.log.Warn("the lock file cannot be locked", "path", f.path, "error", err)
	}
	if !ok {
		return dead{}, false
	}
	f.locked = true
	b, err := f.file.Read()
	if err != nil {
		f.log.Warn("the lock file cannot be read; it proves nothing", "path", f.path, "error", err)
		return dead{}, false
	}
	var r record
	if json.Unmarshal(b, &r) != nil || r.Incarnation == "" || r.Boot != f.file.Boot() {
		return dead{}, false // a new file, one that was cut off in its writing, or of an earlier boot
	}
	return dead{r.Incarnation, !r.Stopping}, true
}

// write records which incarnation the lock is held for from now on, if it is held.
func (f *lockFile) write(incarnation string, stopping bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.locked {
		return
	}
	b, err := json.Marshal(record{incarnation, f.file.Boot(), stopping})
	if err == nil {
		err = f.file.Write(b)
	}
	if err != nil {
		f.log.Warn("the lock file cannot be written; a crash of this node will not be proven", "path", f.path, "error", err)
	}
}

// close releases the lock. Children that have inherited it go on holding it.
func (f *lockFile) close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); err != nil {
		f.log.Debug("close the lock file", "path", f.path, "error", err)
	}
}
