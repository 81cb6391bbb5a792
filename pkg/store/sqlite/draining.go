package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
)

// Each node that is drained is a setting of its own, so that each statement is a change of one node.
const (
	readDraining = "SELECT substr(name, 10) FROM settings WHERE name > 'draining:' AND name < 'draining;' ORDER BY name"
	keepDraining = "UPDATE settings SET value = '' WHERE name = 'draining:' || ?"
	addDraining  = "INSERT INTO settings (name, value) SELECT 'draining:' || ?, '' " +
		"WHERE (SELECT count(*) FROM settings WHERE name > 'draining:' AND name < 'draining;') < ?"
	endDraining = "DELETE FROM settings WHERE name = 'draining:' || ?"
)

// Draining implements store.Settings.
func (s *Store) Draining(ctx context.Context) (nodes []string, err error) {
	err = s.read(ctx, "read settings", func(c *conn) error {
		return c.query(readDraining, func(row []driver.Value) error {
			c := cells(row)
			nodes = append(nodes, c.text())
			return nil
		})
	})
	return nodes, err
}

// SetDraining implements store.Settings.
func (s *Store) SetDraining(ctx context.Context, node string, draining bool) error {
	full := false
	err := s.commit(ctx, "write settings", s.urgent, &call{rows: 1, do: func(t *tx) error {
		full = false
		if !draining {
			_, err := t.exec(endDraining, node)
			return err
		}
		n, err := t.exec(keepDraining, node)
		if err != nil || n > 0 {
			return err
		}
		n, err = t.exec(addDraining, node, int64(store.MaxDraining))
		full = n == 0
		return err
	}})
	if err == nil && full {
		err = s.fail("write settings", fmt.Errorf("%w: %d nodes are drained", store.ErrTooMany, store.MaxDraining))
	}
	return err
}
