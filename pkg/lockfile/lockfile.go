// Package lockfile keeps a second process away from what one process at a time may use: it holds an exclusive lock on a file.
//
// Invariants:
//
//   - The operating system holds the lock, for this process: it ends with the process, however that ends, and no child inherits it.
//   - The file stays when the lock is given up. To remove it would let two processes hold the lock, each on another file of the name.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ErrHeld says that another holder has the lock.
var ErrHeld = errors.New("in use by another process")

// Lock is a lock that is held.
type Lock struct {
	file    *os.File
	release sync.Once
	err     error
}

// Acquire takes the lock of a file, which it makes where there is none, without waiting. The error is ErrHeld if it is held already, also by
// this process; it names the file and, where the holder has said it, the holder's process id.
func Acquire(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if err := lock(f); err != nil {
		holder := holderOf(f)
		_ = f.Close() // the reason is what counts
		if errors.Is(err, ErrHeld) {
			return nil, fmt.Errorf("%s: %w%s", path, ErrHeld, holder)
		}
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	if err := sign(f); err != nil {
		_ = f.Close() // the reason is what counts
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	return &Lock{file: f}, nil
}

// Release gives the lock up. Further calls do nothing.
func (l *Lock) Release() error {
	l.release.Do(func() {
		if err := l.file.Close(); err != nil {
			l.err = fmt.Errorf("lock file: %w", err)
		}
	})
	return l.err
}

// sign writes down who holds the lock, for the error of whoever comes next.
func sign(f *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	return f.Truncate(int64(len(text))) //nolint:wrapcheck // the caller names the file
}

// holderOf says who has written itself down, as the end of a sentence; empty where nobody can be read.
func holderOf(f *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 20))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
