package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const minTime, maxTime = math.MinInt64, math.MaxInt64

// search is a filter as SQL. Each status has its own part, which goes by the index of the statuses; SQLite merges them
// as it goes on.
type search struct {
	where  string // of each part, beside the status
	values []driver.Value
	parts  []int64
}

func newSearch(f *store.Filter) search {
	var s search
	and := func(term string, values ...driver.Value) {
		s.where += " AND " + term
		s.values = append(s.values, values...)
	}
	if f.Executor != "" {
		and("executor = ?", f.Executor)
	}
	if f.ClassName != "" {
		and("class = ?", f.ClassName)
	}
	if f.IDPrefix != "" {
		and("id >= ?", f.IDPrefix)
		if end := behindPrefix(f.IDPrefix); end != "" {
			and("id < ?", end)
		}
	}
	set := task.Set(f.Status...)
	if len(f.Status) == 0 {
		set = task.Set(task.All()...)
	}
	for _, name := range set.List() {
		s.parts = append(s.parts, number(name))
	}
	return s
}

// behindPrefix is the first text behind all that begin with the prefix; empty if there is none.
func behindPrefix(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == math.MaxUint8 {
		b = b[:len(b)-1]
	}
	if len(b) > 0 {
		b[len(b)-1]++
	}
	return string(b)
}

// page is the statement for the rows of a page, as one JSON array, so that the whole search is one step, which the end
// of a context ends.
func (s *search) page() string {
	return "SELECT json_group_array(n) FROM (" +
		s.union("n, created, id", " AND (created, id) < (?, ?)") + " ORDER BY created DESC, id DESC LIMIT ? OFFSET ?)"
}

// count is the statement for the number of all that match.
func (s *search) count() string {
	return "SELECT sum(k) FROM (" + s.union("count(*) AS k", "") + ")"
}

// union puts the parts together.
func (s *search) union(columns, behind string) string {
	parts := make([]string, len(s.parts))
	for i, n := range s.parts {
		parts[i] = "SELECT " + columns + " FROM tasks WHERE " + fmt.Sprintf("status = %d", n) + s.where + behind
	}
	return strings.Join(parts, " UNION ALL ")
}

// List implements store.Tasks.
func (s *Store) List(ctx context.Context, f store.Filter) (store.ListPage, error) {
	if err := f.Check(); err != nil {
		return store.ListPage{}, fmt.Errorf("sqlite: list: %w", err)
	}
	at, id := int64(maxTime), highest
	if f.Cursor != "" {
		var err error
		if at, id, err = store.ParseCursor(f.Cursor); err != nil {
			return store.ListPage{}, fmt.Errorf("sqlite: list: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, store.OpTimeout)
	defer cancel()
	what := newSearch(&f)
	var page store.ListPage
	err := s.snapshotTasks(ctx, "list", func(c *conn) error {
		rows, err := what.find(ctx, c, at, id, f.Limit+1, f.Skip)
		if err != nil {
			return err
		}
		more := len(rows) > f.Limit
		if more {
			rows = rows[:f.Limit]
		}
		if err := each(c, tasksByRow, rows, collect(&page.Tasks)); err != nil {
			return err
		}
		slices.SortFunc(page.Tasks, newestFirst)
		if more {
			page.NextCursor = store.Cursor(&page.Tasks[len(page.Tasks)-1])
		}
		if f.Total {
			page.Total, err = s.total(ctx, c, &what)
		}
		return err
	})
	return page, err
}

// highest is behind every id.
const highest = "\xff\xff\xff\xff"

func newestFirst(a, b task.Task) int {
	return cmp.Or(cmp.Compare(b.CreateDateTime, a.CreateDateTime), cmp.Compare(b.ID, a.ID))
}

// find returns the numbers of the rows behind a place, the newest first.
func (s *search) find(ctx context.Context, c *conn, at int64, id string, limit, skip int) (rows []int64, err error) {
	var values []driver.Value
	for range s.parts {
		values = append(append(values, s.values...), at, id)
	}
	err = c.search(ctx, s.page(), func(row []driver.Value) error {
		list, _ := row[0].(string)
		return json.Unmarshal([]byte(list), &rows)
	}, append(values, int64(limit), int64(skip))...)
	return rows, err
}

// total counts all that match.
func (s *Store) total(ctx context.Context, c *conn, what *search) (n int64, err error) {
	if what.where == "" {
		for _, part := range what.parts {
			n += s.counts[part].Load()
		}
		return n, nil
	}
	var values []driver.Value
	for range what.parts {
		values = append(values, what.values...)
	}
	err = c.search(ctx, what.count(), func(row []driver.Value) error { n, _ = row[0].(int64); return nil }, values...)
	return n, err
}
