package sqlite

import (
	"database/sql/driver"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	holdsKeyPermit  = "SELECT id FROM tasks WHERE key_permit = ?"
	holdsPoolPermit = "SELECT id FROM tasks WHERE pool_permit = ?"
)

// holders says who holds which permit while a call's changes are made: what the file says, and on top of it what they
// have changed. A task with permits is always written into the file with its change (see claimOf), so that the file is
// right.
type holders struct {
	conn   *conn
	ofKey  map[string]string // the task of a permit; empty = nobody
	ofPool map[string]string
}

func newHolders(c *conn) *holders {
	return &holders{conn: c, ofKey: map[string]string{}, ofPool: map[string]string{}}
}

// taken reports whether another task holds a permit that c gives.
func (h *holders) taken(c *task.Change) (bool, error) {
	key, pool := store.Permits(c)
	holder, err := h.of(h.ofKey, holdsKeyPermit, key)
	if err != nil || holder != "" && holder != c.ID {
		return true, err
	}
	holder, err = h.of(h.ofPool, holdsPoolPermit, pool)
	return holder != "" && holder != c.ID, err
}

func (h *holders) of(known map[string]string, sql, permit string) (string, error) {
	if permit == "" {
		return "", nil
	}
	if id, ok := known[permit]; ok {
		return id, nil
	}
	id := ""
	err := h.conn.query(sql, func(row []driver.Value) error {
		id, _ = row[0].(string)
		return nil
	}, permit)
	return id, err
}

// hold notes the permits of a task; lose notes that it has them no more.
func (h *holders) hold(t *task.Task) { h.set(t, t.ID) }
func (h *holders) lose(t *task.Task) { h.set(t, "") }

func (h *holders) set(t *task.Task, id string) {
	if t.KeyPermit != "" {
		h.ofKey[t.KeyPermit] = id
	}
	if t.PoolPermit != "" {
		h.ofPool[t.PoolPermit] = id
	}
}
