package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/skalds-go/skalds/pkg/store"
)

// errClosed says that a call came after Close.
var errClosed = errors.New("the store is closed")

// advice is what to do about what SQLite says, by its primary code. A call that met one of these is to be repeated: the
// fault is not in it.
var advice = map[int]string{
	codes.SQLITE_FULL:     "the disk is full: make room",
	codes.SQLITE_CORRUPT:  "the file is damaged: stop Skalds and restore the file from a copy, or mend it with the .recover command of the sqlite3 program",
	codes.SQLITE_NOTADB:   "the file is no SQLite database, or it is damaged: name another file, or restore it from a copy",
	codes.SQLITE_CANTOPEN: "the file cannot be opened: see that its directory exists and may be written",
	codes.SQLITE_READONLY: "the file or its directory may not be written: correct the permissions",
	codes.SQLITE_PERM:     "the file or its directory may not be written: correct the permissions",
	codes.SQLITE_BUSY:     "another program has it locked: end that program",
	codes.SQLITE_LOCKED:   "another program has it locked: end that program",
	codes.SQLITE_IOERR:    "the disk does not read or write: look at the system's log",
}

// fail is the error of a call: what was done, on which file, and what to do about it.
func (s *Store) fail(op string, err error) error {
	return fmt.Errorf("sqlite: %s: %s: %w", s.path, op, judged(err))
}

// judged adds store.ErrUnavailable where another try may do better, and what to do.
func judged(err error) error {
	var answer *sqlite.Error
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errClosed):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case errors.As(err, &answer):
		if what, ok := advice[answer.Code()&0xff]; ok {
			return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, what, err)
		}
	}
	return err
}

// refusal says that the store can never take one task or change, whatever becomes of the others.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refusable makes a refusal of an error that is about the size of what was to be written.
func refusable(err error) error {
	var answer *sqlite.Error
	if errors.As(err, &answer) && answer.Code()&0xff == codes.SQLITE_TOOBIG {
		return refusal{err}
	}
	return err
}
