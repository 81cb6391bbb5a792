// Package lockfile keeps other processes away from what only one process at a time may use, by an exclusive lock on a
// file.
//
// Invariants:
//
//   - The operating system holds the lock for this process. It ends with the process, however that ends, and no child
//     inherits it.
//   - The file stays when the lock is released. If it were removed, two processes could hold the lock on two files of
//     the same name.
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

// ErrHeld means that another holder has the lock.
var ErrHeld = errors.New("in use by another process")

// Lock is a lock that is held.
type Lock struct {
	file    *os.File
	release sync.Once
	err     error
}

// Acquire locks a file without waiting. It creates the file if there is none. The error is ErrHeld if the lock is held
// already, also by this process; it names the file and, if known, the process id of the holder.
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

// Release releases the lock. Further calls do nothing.
func (l *Lock) Release() error {
	l.release.Do(func() {
		if err := l.file.Close(); err != nil {
			l.err = fmt.Errorf("lock file: %w", err)
		}
	})
	return l.err
}

// sign writes the process id into the file, for the error that other processes get.
func sign(f *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	return f.Truncate(int64(len(text))) //nolint:wrapcheck // the caller names the file
}

// holderOf returns the process id in the file, as the end of a sentence, or "" if there is none.
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
