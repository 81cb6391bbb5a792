package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/skalds-go/skalds/pkg/lockfile"
	"github.com/skalds-go/skalds/pkg/store"
)

// Sync says what an acknowledged write outlives.
type Sync string

const (
	// SyncFull writes outlive a power cut: the disk has them before they are acknowledged.
	SyncFull Sync = "full"
	// SyncNormal writes outlive the end of the process, however it ends, but not a power cut or a crash of the
	// operating system: the last seconds may be missing then. The file stays whole.
	SyncNormal Sync = "normal"
)

// Options are what can be chosen of a store. The zero value is the safest.
type Options struct {
	Sync Sync // empty = SyncFull
}

const (
	// readers is how many reads run at once; others wait.
	readers = 4
	// writerCache and readerCache are how much of the file each connection keeps in memory, in KiB.
	writerCache = 8 << 10
	readerCache = 8 << 10
	// walPages is the size of the write-ahead log from which on it is brought into the file, in pages of 4 KiB;
	// walBytes is what is left of it when it was larger for a moment.
	walPages = 16384
	walBytes = 64 << 20
	// busyMs is how long a lock of another program, such as a backup, is waited for.
	busyMs = 3000
)

// Store is the store in one file. It is safe for concurrent use.
type Store struct {
	path string
	lock *lockfile.Lock

	writer  *conn      // of the writing goroutine
	idle    chan *conn // connections for reads that nobody uses
	calls   chan *call // waiting for the writing goroutine
	urgent  chan *call // the same, in front of the others
	closing chan struct{}
	written chan struct{} // closed when the writing goroutine has ended

	counts [7]atomic.Int64 // tasks of each status
	recent *recent

	close    sync.Once
	closeErr error
}

var _ store.Store = (*Store)(nil)

// Open opens the file, and makes it where there is none; its directory must exist. Beside it stand PATH-wal and
// PATH-shm, which belong to it, and PATH.lock. One process at a time has it open: the error is lockfile.ErrHeld while
// another one does.
//
// Since nobody else can have it open, whoever led according to the file is dead: the leadership is free.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{
		path: path, idle: make(chan *conn, readers), calls: make(chan *call, maxWaiting), urgent: make(chan *call, maxWaiting),
		closing: make(chan struct{}), written: make(chan struct{}), recent: newRecent(),
	}
	var err error
	if s.lock, err = lockfile.Acquire(path + ".lock"); err != nil {
		if errors.Is(err, lockfile.ErrHeld) {
			return nil, fmt.Errorf("sqlite: %s cannot be opened: %w: end that process, or name another file", path, err)
		}
		return nil, fmt.Errorf("sqlite: %s cannot be opened: %w", path, err)
	}
	if err := s.open(ctx, o); err != nil {
		_ = s.free() // the reason is what counts
		return nil, s.fail("open", err)
	}
	go s.write()
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) (err error) {
	common := []string{"_error_rc=1", "_dqs=0", fmt.Sprintf("_pragma=busy_timeout(%d)", busyMs), "_pragma=temp_store(MEMORY)"}
	synchronous := "FULL"
	if o.Sync == SyncNormal {
		synchronous = "NORMAL"
	}
	s.writer, err = dial(ctx, s.path, append(common,
		"_pragma=journal_mode(WAL)", fmt.Sprintf("_pragma=synchronous(%s)", synchronous), fmt.Sprintf("_pragma=cache_size(-%d)", writerCache),
		fmt.Sprintf("_pragma=wal_autocheckpoint(%d)", walPages), fmt.Sprintf("_pragma=journal_size_limit(%d)", walBytes))...)
	if err != nil {
		return err
	}
	if err := migrate(s.writer, migrations); err != nil {
		return err
	}
	if _, err := s.writer.exec(freeLeader); err != nil {
		return err
	}
	if err := s.replay(); err != nil {
		return err
	}
	if err := s.loadCounts(); err != nil {
		return err
	}
	for range readers {
		c, err := dial(ctx, s.path, append(common, "mode=ro", fmt.Sprintf("_pragma=cache_size(-%d)", readerCache))...)
		if err != nil {
			return err
		}
		s.idle <- c
	}
	return nil
}

// free closes what is open.
func (s *Store) free() error {
	var errs []error
	for range len(s.idle) {
		errs = append(errs, (<-s.idle).Close())
	}
	if s.writer != nil { // the last: it brings the log into the file
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(append(errs, s.lock.Release())...)
}

// Ping implements store.Store. It reads from the file.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(c *conn) error {
		_, err := c.number("SELECT term FROM leader")
		return err
	})
}

// Close implements store.Store. It waits for the calls that are under way; those that wait for their turn, and later
// ones, get an error.
func (s *Store) Close(context.Context) error {
	s.close.Do(func() {
		close(s.closing)
		<-s.written
		open := make([]*conn, 0, readers)
		for range readers {
			open = append(open, <-s.idle)
		}
		for _, c := range open {
			s.idle <- c
		}
		if err := s.free(); err != nil {
			s.closeErr = s.fail("close", err)
		}
	})
	return s.closeErr
}

// read calls f with a connection for reads. All that f reads in one statement is of one moment.
func (s *Store) read(ctx context.Context, op string, f func(*conn) error) error {
	c, err := s.reader(ctx)
	if err == nil {
		err = f(c)
		s.idle <- c
	}
	if err != nil {
		return s.fail(op, err)
	}
	return nil
}

// readTasks is read for what looks at tasks.
func (s *Store) readTasks(ctx context.Context, op string, f func(*conn) error) error {
	if err := s.flush(ctx, op); err != nil {
		return err
	}
	return s.read(ctx, op, f)
}

// reader takes a connection that nobody uses.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-s.closing:
		return nil, errClosed
	default:
	}
	select {
	case c := <-s.idle:
		return c, nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, store.OpTimeout)
	defer cancel()
	select {
	case c := <-s.idle:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		return nil, errClosed
	}
}

// snapshot is read for what is read in several statements, all of it of one moment.
func (s *Store) snapshot(ctx context.Context, op string, f func(*conn) error) error {
	return s.read(ctx, op, func(c *conn) error {
		if _, err := c.exec("BEGIN"); err != nil {
			return err
		}
		err := f(c)
		_, end := c.exec("COMMIT")
		return errors.Join(err, end)
	})
}

// snapshotTasks is snapshot for what looks at tasks.
func (s *Store) snapshotTasks(ctx context.Context, op string, f func(*conn) error) error {
	if err := s.flush(ctx, op); err != nil {
		return err
	}
	return s.snapshot(ctx, op, f)
}
