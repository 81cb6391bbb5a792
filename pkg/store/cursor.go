package store

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/skalds-go/skalds/pkg/task"
)

// cursorVersion is the first byte of a cursor.
const cursorVersion = 1

// Cursor returns the place just behind t in the order of List, as text. All stores use it.
func Cursor(t *task.Task) string {
	b := append(make([]byte, 0, 9+len(t.ID)), cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(t.CreateDateTime))
	return base64.RawURLEncoding.EncodeToString(append(b, t.ID...))
}

// ParseCursor parses the result of Cursor. Its error is ErrBadCursor.
func ParseCursor(s string) (createDateTime int64, id string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 9 || b[0] != cursorVersion {
		return 0, "", fmt.Errorf("cursor %q: %w: take nextCursor of the page before, or none for the first page", s, ErrBadCursor)
	}
	return int64(binary.BigEndian.Uint64(b[1:])), string(b[9:]), nil
}
