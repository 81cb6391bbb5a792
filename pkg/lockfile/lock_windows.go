package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedAt is the byte that is locked: far behind the text, which others may read.
const lockedAt = 1 << 30

// lock takes the lock of an open file, without waiting.
func lock(f *os.File) error {
	at := windows.Overlapped{Offset: lockedAt}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err //nolint:wrapcheck // the caller names the file
}
