package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// block has the writing goroutine wait in a call. The function lets it go on, and returns when the call is done.
func block(t *testing.T, s *Store) (release func()) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	c := push(s.calls, 1, func(*tx) error { close(began); <-end; return nil })
	<-began
	return func() {
		t.Helper()
		close(end)
		finish(t, nil, c)
	}
}

// push puts a call where the writing goroutine finds it.
func push(to chan *call, rows int, do func(*tx) error) *call {
	c := &call{rows: rows, do: do, done: make(chan error, 1)}
	to <- c
	return c
}

// finish waits for calls, which must end with the error.
func finish(t *testing.T, want error, calls ...*call) {
	t.Helper()
	for i, c := range calls {
		if err := <-c.done; !errors.Is(err, want) {
			t.Errorf("call %d: error %v; want %v", i, err, want)
		}
	}
}

// TestCallsShareTransactions: what came in while the writing goroutine was busy is written together, up to the bounds.
func TestCallsShareTransactions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows []int // of the calls that wait
		want []int // calls in each transaction
	}{
		"few":                     {[]int{1, 1, 1, 1, 1}, []int{5}},
		"as many as there can be": {slices.Repeat([]int{1}, maxWaiting), []int{maxWaiting}},
		"large ones":              {[]int{maxRows, 1, maxRows - 1, maxRows - 1, 1, 1}, []int{1, 2, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			release := block(t, s)
			var last *tx
			var got []int
			calls := make([]*call, 0, len(c.rows))
			for _, rows := range c.rows {
				calls = append(calls, push(s.calls, rows, func(t *tx) error {
					if t != last {
						last, got = t, append(got, 0)
					}
					got[len(got)-1]++
					return nil
				}))
			}
			release()
			finish(t, nil, calls...)
			if !slices.Equal(got, c.want) {
				t.Errorf("transactions of %v calls; want %v", got, c.want)
			}
		})
	}
}

// TestACallFailsAlone: the calls that shared its transaction are carried out.
func TestACallFailsAlone(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	failure := errors.New("no")
	save := func(topic string) func(*tx) error {
		return func(t *tx) error { _, err := t.exec(savePosition, topic, int64(0), int64(1), int64(2)); return err }
	}
	release := block(t, s)
	before := push(s.calls, 1, save("before"))
	bad := push(s.calls, 1, func(t *tx) error { return errors.Join(save("bad")(t), failure) })
	broken := push(s.calls, 1, func(t *tx) error { _, err := t.exec("ROLLBACK"); return errors.Join(err, failure) }) // as SQLite may do
	after := push(s.calls, 1, save("after"))
	release()
	finish(t, nil, before, after)
	finish(t, failure, bad, broken)
	if got := s.sql(t, "SELECT topic FROM positions ORDER BY topic"); !slices.Equal(got, []string{"after", "before"}) {
		t.Errorf("written: %v", got)
	}
}

// TestUrgentCallsGoFirst: the leader's renewal does not wait behind the tasks that are submitted.
func TestUrgentCallsGoFirst(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var order []string
	note := func(name string) func(*tx) error {
		return func(*tx) error { order = append(order, name); return nil }
	}
	release := block(t, s)
	calls := []*call{push(s.calls, 1, note("call")), push(s.urgent, 1, note("urgent")), push(s.urgent, 1, note("urgent"))}
	release()
	finish(t, nil, calls...)
	if !slices.Equal(order, []string{"urgent", "urgent", "call"}) {
		t.Errorf("order %v", order)
	}
}

// TestACallThatNobodyWaitsFor has not happened, if its turn had not come; else nobody knows.
func TestACallThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	release := block(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := s.Create(ctx, []task.Task{waits(1)}); done <- err }()
	for len(s.calls) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	release()
	if got, err := s.Get(t.Context(), []string{waits(1).ID}); err != nil || len(got) != 0 {
		t.Errorf("it has happened: %v, %v", got, err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	end := make(chan struct{})
	c := &call{rows: 1, do: func(*tx) error { cancel(); <-end; return nil }}
	if err := s.commit(ctx, "x", s.calls, c); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v of a call that was under way", err)
	}
	close(end)
}

// TestCallsAreHeldUp: only so many wait in the store.
func TestCallsAreHeldUp(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	release := block(t, s)
	calls := make([]*call, maxWaiting)
	for i := range calls {
		calls[i] = push(s.calls, 1, func(*tx) error { return nil })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Purge(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	release()
	finish(t, nil, calls...)
}

// TestReadsAreHeldUp: only so many run at once.
func TestReadsAreHeldUp(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var taken []*conn
	for range readers {
		taken = append(taken, <-s.idle)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	for _, c := range taken {
		s.idle <- c
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileCallsWait: what is under way is done, what waits is told.
func TestCloseWhileCallsWait(t *testing.T) {
	t.Parallel()
	s := openTest(t, filepath.Join(t.TempDir(), "skalds.db"))
	release := block(t, s)
	done := make(chan error, 1)
	go func() { _, err := s.Purge(t.Context(), "x"); done <- err }()
	for len(s.calls) == 0 {
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close(t.Context()) }()
	<-s.closing
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil && !errors.Is(err, errClosed) {
		t.Errorf("error %v", err)
	}
}

// TestDiskFull: a call that finds no room changes nothing and says so; the others go on, and so does it when there is
// room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	big := waits(1)
	big.Attachments = []byte(`"` + strings.Repeat("x", 100_000) + `"`)
	mustCreate(t, s, waits(2))
	limit := s.sql(t, "PRAGMA page_count")[0]
	s.sql(t, "PRAGMA max_page_count = "+limit)
	for range 2 {
		_, err := s.Create(t.Context(), []task.Task{big})
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), s.path) {
			t.Fatalf("error %v", err)
		}
		if ok, err := s.SwapLeader(t.Context(), store.Leader{}, store.Leader{}); err != nil || !ok {
			t.Errorf("a call that needs no room: %t, %v", ok, err)
		}
	}
	if got, err := s.Get(t.Context(), []string{big.ID}); err != nil || len(got) != 0 {
		t.Errorf("stored: %v, %v", got, err)
	}
	s.sql(t, "PRAGMA max_page_count = 1000000")
	mustCreate(t, s, big)
}

// TestTooLarge: what SQLite can never take is refused, and the others are stored.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	err := error(refusal{errors.New("x")})
	if !errors.Is(judged(err), err) || errors.Is(judged(err), store.ErrUnavailable) {
		t.Errorf("%v", judged(err))
	}
	s := fresh(t)
	create := waits(1)
	mustCreate(t, s, create)
	never := task.Change{ID: create.ID, From: task.Set(task.Created), To: task.Created, Progress: &task.Progress{Percent: notANumber()}}
	other := waits(2)
	mustCreate(t, s, other)
	n, err := s.Apply(t.Context(), []task.Change{never, task.Refuse(&other, "no", 5)})
	if n != 1 || err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), create.ID) {
		t.Errorf("%d applied, error %v", n, err)
	}
	if got := mustGet(t, s, other.ID); got.LifecycleStatus != task.Failed {
		t.Errorf("the other one is %s", got.LifecycleStatus)
	}
}

func notANumber() float64 { zero := 0.0; return zero / zero }
