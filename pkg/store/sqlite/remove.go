package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
)

const (
	purge  = "DELETE FROM tasks WHERE id = ? AND status > 3 RETURNING status"
	expire = "DELETE FROM tasks WHERE n IN (SELECT n FROM tasks WHERE status > 3 AND updated < ? ORDER BY updated LIMIT ?) RETURNING status"
)

// Purge implements store.Tasks.
func (s *Store) Purge(ctx context.Context, id string) (bool, error) {
	n, err := s.remove(ctx, "purge", 1, purge, id)
	return n > 0, err
}

// Expire implements store.Tasks. The room in the file is used again; the file does not become smaller.
func (s *Store) Expire(ctx context.Context, endedBefore int64, limit int) (int, error) {
	if err := store.CheckLimit(limit); err != nil {
		return 0, fmt.Errorf("sqlite: expire: %w", err)
	}
	return s.remove(ctx, "expire", limit, expire, endedBefore, int64(limit))
}

// remove deletes rows by a statement that gives the status of each.
func (s *Store) remove(ctx context.Context, op string, rows int, sql string, values ...driver.Value) (removed int, err error) {
	err = s.commit(ctx, op, s.calls, &call{rows: rows, do: func(t *tx) error {
		removed = 0
		if err := t.writeDeferred(); err != nil { // or what was noted of it would be carried out on another task of its id
			return err
		}
		return t.query(sql, func(row []driver.Value) error {
			if n, ok := row[0].(int64); ok && n < int64(len(t.counts)) {
				t.counts[n]--
			}
			removed++
			return nil
		}, values...)
	}})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
