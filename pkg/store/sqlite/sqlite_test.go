package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/storetest"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(asWriter); path != "" {
		writeUntilKilled(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// openTest opens a file. When the test ends, what is kept in memory must be what the file says.
func openTest(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path, Options{Sync: SyncNormal})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		select {
		case <-s.closing: // by the test
			return
		default:
		}
		if err := s.flush(context.Background(), "test"); err != nil {
			tb.Error(err)
		}
		if kept, there := fmt.Sprint(counted(s)), fmt.Sprint(countFile(tb, s)); kept != there {
			tb.Errorf("counts in memory %v, in the file %v", kept, there)
		}
		closeTest(tb, s)
	})
	return s
}

func closeTest(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(tb.Context()); err != nil {
		tb.Errorf("close: %v", err)
	}
}

func counted(s *Store) (n [7]int64) {
	for i := range n {
		n[i] = s.counts[i].Load()
	}
	return n
}

func countFile(tb testing.TB, s *Store) (n [7]int64) {
	tb.Helper()
	c := <-s.idle
	defer func() { s.idle <- c }()
	err := c.query(countAll, func(row []driver.Value) error {
		c := cells(row)
		n[c.int()] = c.int()
		return nil
	})
	if err != nil {
		tb.Errorf("count: %v", err)
	}
	return n
}

func fresh(tb testing.TB) *Store {
	tb.Helper()
	return openTest(tb, filepath.Join(tb.TempDir(), "skalds.db"))
}

// alone leaves all there is to know to the file.
func (s *Store) alone(tb testing.TB) {
	tb.Helper()
	if err := s.flush(context.Background(), "test"); err != nil {
		tb.Fatal(err)
	}
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	clear(s.recent.rows)
	s.recent.bytes = 0
}

// sql runs a statement of the test on the writer's connection, while nobody writes. The store does not know what it
// changes.
func (s *Store) sql(tb testing.TB, text string, values ...driver.Value) (rows []string) {
	tb.Helper()
	s.alone(tb)
	err := s.writer.query(text, func(row []driver.Value) error {
		cells := make([]string, len(row))
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			cells[i] = fmt.Sprint(v)
		}
		rows = append(rows, strings.Join(cells, "|"))
		return nil
	}, values...)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return rows
}

func mustCreate(tb testing.TB, s *Store, tasks ...task.Task) {
	tb.Helper()
	out, err := s.Create(tb.Context(), tasks)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range out {
		if out[i].Status != store.CreateOK {
			tb.Fatalf("%s: %+v", tasks[i].ID, out[i])
		}
	}
}

func mustGet(tb testing.TB, s *Store, id string) task.Task {
	tb.Helper()
	got, err := s.Get(tb.Context(), []string{id})
	if err != nil || len(got) != 1 {
		tb.Fatalf("get %s: %v, %v", id, got, err)
	}
	return got[0]
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return fresh(t) })
}
