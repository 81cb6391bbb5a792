package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/skalds-go/skalds/pkg/store"
)

const (
	readLeader = "SELECT holder, address, mode, term, counter FROM leader"
	swapLeader = "UPDATE leader SET holder = ?, address = ?, mode = ?, term = ?, counter = ? " +
		"WHERE holder = ? AND address = ? AND mode = ? AND term = ? AND counter = ?"
	freeLeader = "UPDATE leader SET holder = '', address = '', mode = '', counter = counter + 1 WHERE holder <> ''"

	readPositions = "SELECT partition, at, seal FROM positions WHERE topic = ?"
	savePosition  = "INSERT INTO positions (topic, partition, at, seal) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, seal = excluded.seal"
)

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context) (l store.Leader, err error) {
	err = s.read(ctx, "read the leader", func(c *conn) error {
		return c.query(readLeader, func(row []driver.Value) error {
			c := cells(row)
			l = store.Leader{Holder: c.text(), Address: c.text(), Mode: c.text(), Term: c.int(), Counter: c.int()}
			return nil
		})
	})
	return l, err
}

// SwapLeader implements store.Leases.
func (s *Store) SwapLeader(ctx context.Context, old, next store.Leader) (swapped bool, err error) {
	err = s.commit(ctx, "write the leader", s.urgent, &call{rows: 1, do: func(t *tx) error {
		n, err := t.exec(swapLeader, next.Holder, next.Address, next.Mode, next.Term, next.Counter, old.Holder, old.Address, old.Mode, old.Term, old.Counter)
		swapped = n == 1
		return err
	}})
	return err == nil && swapped, err
}

// Positions implements store.Positions.
func (s *Store) Positions(ctx context.Context, topic string) (map[int]store.Position, error) {
	positions := make(map[int]store.Position)
	err := s.read(ctx, "read positions", func(c *conn) error {
		return c.query(readPositions, func(row []driver.Value) error {
			c := cells(row)
			positions[int(c.int())] = store.Position{Offset: c.int(), Check: uint64(c.int())}
			return nil
		}, topic)
	})
	return positions, err
}

// SavePositions implements store.Positions.
func (s *Store) SavePositions(ctx context.Context, topic string, positions map[int]store.Position) error {
	rows := make([][]driver.Value, 0, len(positions))
	for partition, p := range positions {
		rows = append(rows, []driver.Value{topic, int64(partition), p.Offset, int64(p.Check)})
	}
	return s.commit(ctx, "write positions", s.urgent, &call{rows: len(rows), do: func(t *tx) error {
		for _, row := range rows {
			if _, err := t.exec(savePosition, row...); err != nil {
				return err
			}
		}
		return nil
	}})
}
