package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// pageSize is how many tasks a long read gets at a time.
const pageSize = 1000

var (
	tasksByID  = "SELECT " + whole + " FROM tasks WHERE id IN "
	tasksByRow = "SELECT " + whole + " FROM tasks WHERE n IN "
	active     = "SELECT " + light + " FROM tasks WHERE status = ? AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?"
	desired    = "SELECT " + light + " FROM tasks WHERE desired > '' AND status < 4 LIMIT ?"
	countAll   = "SELECT status, count(*) FROM tasks GROUP BY status"
)

// collect takes every task, as far as it can be read.
func collect(to *[]task.Task) func(row []driver.Value) error {
	return func(row []driver.Value) error {
		t, _ := decode(row) // Waiting is where one that cannot be read is dealt with
		*to = append(*to, t)
		return nil
	}
}

// Get implements store.Tasks.
func (s *Store) Get(ctx context.Context, ids []string) ([]task.Task, error) {
	if err := store.CheckBatch(len(ids)); err != nil {
		return nil, fmt.Errorf("sqlite: get: %w", err)
	}
	seen := make(map[string]struct{}, len(ids))
	once := make([]string, 0, len(ids))
	for _, id := range ids {
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			once = append(once, id)
		}
	}
	out := make([]task.Task, 0, len(once))
	err := s.snapshotTasks(ctx, "get", func(c *conn) error { return each(c, tasksByID, once, collect(&out)) })
	return out, err
}

// Active implements store.Tasks. It reads a page at a time, and yields it without holding anything.
func (s *Store) Active(ctx context.Context, yield func(*task.Task) error) error {
	for n := number(task.Assigning); n <= number(task.Paused); n++ {
		at, id := int64(minTime), ""
		for more := true; more; {
			var page []task.Task
			err := s.readTasks(ctx, "read what is active", func(c *conn) error {
				return c.query(active, collect(&page), n, at, id, int64(pageSize))
			})
			if err != nil {
				return err
			}
			for i := range page {
				if err := yield(&page[i]); err != nil {
					return err
				}
			}
			if more = len(page) == pageSize; more {
				at, id = page[pageSize-1].CreateDateTime, page[pageSize-1].ID
			}
		}
	}
	return nil
}

// Desired implements store.Tasks.
func (s *Store) Desired(ctx context.Context, limit int) ([]task.Task, error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, fmt.Errorf("sqlite: desired: %w", err)
	}
	var out []task.Task
	err := s.readTasks(ctx, "read desired states", func(c *conn) error { return c.query(desired, collect(&out), int64(limit)) })
	return out, err
}

// Counts implements store.Tasks. The numbers are kept in memory: nobody else writes into the file.
func (s *Store) Counts(ctx context.Context) (map[task.Status]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fail("count", err)
	}
	counts := make(map[task.Status]int64, len(statuses))
	for i, name := range statuses {
		counts[name] = s.counts[i].Load()
	}
	return counts, nil
}

// loadCounts counts what the file holds.
func (s *Store) loadCounts() error {
	for i := range s.counts {
		s.counts[i].Store(0)
	}
	return s.writer.query(countAll, func(row []driver.Value) error {
		c := cells(row)
		if n := c.int(); n >= 0 && n < int64(len(s.counts)) {
			s.counts[n].Store(c.int())
		}
		return nil
	})
}
