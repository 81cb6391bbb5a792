package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/pkg/task"
)

// A claim is soon followed by the end of the run, which writes the row anew. So a claim is first only noted: all those
// of a transaction in one row of the table claims. The task's own row, with its entries in the indexes, is written once
// for both. Until then the task as it is stands in memory, and every change goes by that. Whatever looks at tasks in
// the file, but Queues and Waiting, has them written before (readTasks, snapshotTasks, writeDeferred); so do Close,
// Open after a crash, and claims when there are too many.
const (
	noteClaims  = "INSERT INTO claims (noted) VALUES (?)"
	readClaims  = "SELECT noted FROM claims ORDER BY n"
	clearClaims = "DELETE FROM claims"

	// maxDeferred and maxNotes bound the claims that are only noted, and the rows of notes.
	maxDeferred = 1000
	maxNotes    = 100
)

// claim is one as it is noted.
type claim struct {
	ID      string           `json:"id"`
	Attempt int64            `json:"attempt,omitempty"` // before it
	ClaimID string           `json:"claimId,omitempty"` // before it
	At      int64            `json:"at"`
	To      *task.Assignment `json:"to"`
}

// claimOf returns a change as a claim, if it is one and nothing else. One that takes permits is not put off: the file
// reports whether they are free.
func claimOf(c *task.Change) (claim, bool) {
	is := c.AsOf == 0 && c.Assign != nil && c.Assign.KeyPermit == "" && c.Assign.PoolPermit == "" && c.From == task.Set(task.Created) && c.To == task.Assigning &&
		c.IfDesired == nil && !c.Unassign && c.StartedAt == 0 && c.FinishedAt == 0 && c.Result == nil && c.Error == "" && c.Progress == nil &&
		c.Desired == "" && !c.ClearDesired && c.NotBefore == 0 && c.Counts == nil && c.Run == nil && c.Update == nil && !c.Reset
	return claim{ID: c.ID, Attempt: c.Attempt, ClaimID: c.ClaimID, At: c.UpdatedAt, To: c.Assign}, is
}

func (c *claim) change() task.Change {
	return task.Change{ID: c.ID, From: task.Set(task.Created), Attempt: c.Attempt, ClaimID: c.ClaimID, To: task.Assigning, UpdatedAt: c.At, Assign: c.To}
}

// postpone defers writing a changed row. It reports false for a row that has to be written now.
func (t *tx) postpone(h *held) bool {
	c, ok := claimOf(h.last)
	if !ok || h.applied != 1 || h.before.file != nil || !h.now.keepable() || h.now.is.NotBefore != 0 { // the last is Promote's
		return false
	}
	h.now.file = &h.before.is
	t.count(h)
	t.remember(h.now)
	t.claims = append(t.claims, c)
	return true
}

// writeNotes writes the claims of the transaction into the table claims.
func (t *tx) writeNotes() error {
	if len(t.claims) == 0 {
		return nil
	}
	if t.recent.notes >= maxNotes || len(t.recent.deferred)+len(t.claims) > maxDeferred {
		return t.writeDeferred()
	}
	text, err := json.Marshal(t.claims) //nolint:musttag // an assignment's names in Go are those in the file
	if err != nil {
		return fmt.Errorf("note claims: %w", err)
	}
	t.notes = 1
	_, err = t.exec(noteClaims, string(text))
	return err
}

// writeDeferred writes the deferred rows, and removes the notes.
func (t *tx) writeDeferred() error {
	var rows []*kept
	for id := range t.recent.deferred {
		if _, changed := t.rows[id]; !changed {
			rows = append(rows, t.recent.rows[id])
		}
	}
	for _, k := range t.rows {
		if k != nil && k.file != nil {
			rows = append(rows, k)
		}
	}
	t.claims = nil
	if len(rows) == 0 && t.recent.notes == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b *kept) int { return cmp.Compare(a.n, b.n) })
	for _, k := range rows {
		if err := t.update(&held{before: k, now: &kept{n: k.n, is: k.is}}); err != nil {
			return fmt.Errorf("task %q: %w", k.is.ID, err)
		}
	}
	t.cleared = true
	_, err := t.exec(clearClaims)
	return err
}

// flush returns when every row in the file includes what has been acknowledged.
func (s *Store) flush(ctx context.Context, op string) error {
	if s.recent.late() == 0 {
		return nil
	}
	return s.commit(ctx, op, s.urgent, &call{do: (*tx).writeDeferred})
}

// replay writes the claims that a process had noted before it crashed. A claim that was followed by more changes
// matches nothing.
func (s *Store) replay() error {
	return s.transact([]*call{{do: func(t *tx) error {
		var changes []task.Change
		err := t.query(readClaims, func(row []driver.Value) error {
			var noted []claim
			if err := unpack("noted", row[0], &noted); err != nil {
				return err
			}
			for i := range noted {
				changes = append(changes, noted[i].change())
			}
			return nil
		})
		if err != nil || len(changes) == 0 {
			return err
		}
		if _, refused, err := t.apply(changes); err != nil || refused != nil {
			return fmt.Errorf("claims that were noted: %w", errors.Join(err, refused))
		}
		return t.writeDeferred()
	}}})
}
