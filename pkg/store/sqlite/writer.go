package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/skalds-go/skalds/pkg/store"
)

const (
	// maxWaiting is how many calls wait for the writing goroutine; the callers of others are held up.
	maxWaiting = 64
	// maxRows and maxBytes bound a transaction: calls join it as long as it is below both.
	maxRows  = 2000
	maxBytes = 16 << 20
)

// tx is a transaction that is under way.
type tx struct {
	*conn

	recent  *recent
	rows    map[string]*kept // what it has changed; nil = not to be kept
	claims  []claim          // of those, what is not written into the rows but to be noted
	notes   int              // rows of notes it has written
	cleared bool             // it has done away with all notes before those
	counts  [7]int64         // by how much the numbers of tasks of each status change
}

// call is one call of the store that writes.
type call struct {
	rows  int // about how many it touches
	bytes int // about how large they are
	// do carries the call out. It begins from nothing each time it is called: it is called again after a transaction
	// that was undone.
	do func(*tx) error

	taken atomic.Bool // by the writing goroutine, or by the caller who does not wait any longer: whoever sets it
	done  chan error
}

// acquire reports whether the call now belongs to the one who asks: the writing goroutine, or the caller who no longer
// waits.
func (c *call) acquire() bool { return c.taken.CompareAndSwap(false, true) }

// commit hands a call to the writing goroutine and returns when it is on the disk. A call whose context ends before its
// turn has not happened.
func (s *Store) commit(ctx context.Context, op string, to chan *call, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, store.OpTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return s.fail(op, err)
	}
	c.done = make(chan error, 1)
	select {
	case to <- c:
	case <-ctx.Done():
		return s.fail(op, ctx.Err())
	case <-s.closing:
		return s.fail(op, errClosed)
	}
	var err error
	select {
	case err = <-c.done:
	case <-ctx.Done():
		if err = ctx.Err(); !c.acquire() {
			err = fmt.Errorf("%w: it was being written when the caller stopped waiting: %w", store.ErrUnavailable, err)
		}
	case <-s.written: // a call that came in while the store closed
		if err = errClosed; !c.acquire() {
			err = <-c.done
		}
	}
	if err != nil {
		return s.fail(op, err)
	}
	return nil
}

// write is the writing goroutine. While one transaction goes to the disk, calls gather for the next, so none waits
// longer than for that.
func (s *Store) write() {
	defer close(s.written)
	for {
		var group []*call
		select {
		case c := <-s.urgent:
			group = s.gather(c)
		default:
			select {
			case c := <-s.urgent:
				group = s.gather(c)
			case c := <-s.calls:
				group = s.gather(c)
			case <-s.closing:
				_ = s.transact([]*call{{do: (*tx).writeDeferred}}) // what is left is written at the next Open
				return
			}
		}
		if len(group) > 0 {
			s.carryOut(group)
		}
	}
}

// gather collects the calls that wait, starting with c, up to the bounds of a transaction.
func (s *Store) gather(c *call) []*call {
	var group []*call
	rows, bytes := 0, 0
	for {
		if c.acquire() {
			group = append(group, c)
			rows, bytes = rows+c.rows, bytes+c.bytes
		}
		if rows >= maxRows || bytes >= maxBytes {
			return group
		}
		select {
		case c = <-s.urgent:
			continue
		default:
		}
		select {
		case c = <-s.calls:
		default:
			return group
		}
	}
}

// carryOut writes calls in one transaction. If it fails, each call gets a transaction of its own, so that none fails
// because of another.
func (s *Store) carryOut(group []*call) {
	err := s.transact(group)
	if err == nil || len(group) == 1 {
		for _, c := range group {
			c.done <- err
		}
		return
	}
	for _, c := range group {
		c.done <- s.transact([]*call{c})
	}
}

func (s *Store) transact(group []*call) error {
	t := tx{conn: s.writer, recent: s.recent, rows: make(map[string]*kept)}
	_, err := t.exec("BEGIN IMMEDIATE")
	for i := 0; err == nil && i < len(group); i++ {
		err = group[i].do(&t)
	}
	if err == nil {
		err = t.writeNotes()
	}
	if err == nil {
		_, err = t.exec("COMMIT")
	}
	if err != nil {
		// SQLite may have undone it already, which makes this an error that says nothing.
		if _, undo := t.exec("ROLLBACK"); undo == nil {
			return err
		}
		return errors.Join(err, s.rollBack())
	}
	s.recent.put(&t)
	for i, n := range t.counts {
		s.counts[i].Add(n)
	}
	return nil
}

// rollBack ensures that no transaction is open.
func (s *Store) rollBack() error {
	if _, err := s.writer.exec("BEGIN"); err != nil {
		return err
	}
	_, err := s.writer.exec("ROLLBACK")
	return err
}
