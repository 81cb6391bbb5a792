package sqlite

import (
	"maps"
	"sync"

	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// maxRecent is how much memory the rows may take that wait, in bytes; those that are on a node may take as much
	// again.
	maxRecent = 32 << 20
	// What a row, a run in its history, and a text take beside their texts, about.
	rowBytes, runBytes, textBytes = 1 << 10, 160, 32
)

// kept is a task as its row says. Nobody writes into it; a change of the row puts another in its place.
type kept struct {
	n     int64
	is    task.Task // what of it was not read is elsewhere
	bytes int       // about what it takes
	bad   bool      // some of the row does not decode

	file *task.Task // what the row in the file says, if it is not this; see deferred.go
}

// filed is what the row in the file says.
func (k *kept) filed() *task.Task {
	if k.file != nil {
		return k.file
	}
	return &k.is
}

// recent keeps rows of tasks that have not ended, so that those that were just written need not be read for their next
// change. Only the writing goroutine changes it, when a transaction is on the disk and before anybody is told so: so it
// never says less than the file that is read after an acknowledgement. A row that is not in it is read.
type recent struct {
	mu    sync.RWMutex
	rows  map[string]*kept // by the task's id
	bytes int

	deferred map[string]struct{} // rows that are not in the file as they are
	notes    int                 // rows of the table claims
}

func newRecent() *recent {
	return &recent{rows: make(map[string]*kept), deferred: make(map[string]struct{})}
}

// late returns the number of rows that the file does not have as they are.
func (r *recent) late() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.deferred)
}

// taken returns the tasks of those rows.
func (r *recent) taken() map[string]struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.deferred)
}

// get returns the row of a task; nil if it is not kept.
func (r *recent) get(id string) *kept {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.rows[id]
}

// find sets the kept row of each of the waiters.
func (r *recent) find(line []waiter) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := range line {
		if k := r.rows[line[i].at.ID]; k != nil && k.n == line[i].n {
			line[i].kept = k
		}
	}
}

// put adds what a transaction has written. A row beyond the memory limit is not kept.
func (r *recent) put(t *tx) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notes += t.notes; t.cleared {
		r.notes = t.notes
	}
	for id, row := range t.rows {
		if old, ok := r.rows[id]; ok {
			r.bytes -= old.bytes
			delete(r.rows, id)
			delete(r.deferred, id)
		}
		if row == nil || row.file == nil && r.bytes+row.bytes > row.memoryLimit() {
			continue
		}
		r.rows[id] = row
		r.bytes += row.bytes
		if row.file != nil {
			r.deferred[id] = struct{}{}
		}
	}
}

// memoryLimit returns the size of all rows up to which this one is kept. A task on a node is changed before one that
// waits.
func (k *kept) memoryLimit() int {
	if k.is.LifecycleStatus == task.Created {
		return maxRecent
	}
	return 2 * maxRecent
}

// elsewhere stands in a row in place of JSON that was not read with it.
var elsewhere = []byte("elsewhere")

// same reports whether two texts are the same memory, not only equal.
func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// keepable reports whether a row may be kept: it has not ended, and it decodes. Waiting handles those that do not.
func (k *kept) keepable() bool {
	return !k.is.LifecycleStatus.Terminal() && len(k.is.Result) == 0 && !k.bad
}

// remember records in a transaction what a row is now.
func (t *tx) remember(k *kept) {
	k.bytes = weight(&k.is)
	if t.rows[k.is.ID] = k; !k.keepable() {
		t.rows[k.is.ID] = nil
	}
}

// weight returns about how many bytes a task takes in memory.
func weight(t *task.Task) int {
	n := rowBytes + len(t.Selector) + len(t.ID) + len(t.ClassName) + len(t.Source) + len(t.Name) + len(t.Description) + len(t.Error) + len(t.Attachments)
	for i := range t.Attempts {
		n += runBytes + len(t.Attempts[i].Error)
	}
	for _, id := range t.Dependencies {
		n += textBytes + len(id)
	}
	for k, v := range t.Labels {
		n += 2*textBytes + len(k) + len(v)
	}
	return n
}

// recall returns a row as the transaction sees it; nil if it has to be read.
func (t *tx) recall(id string) *kept {
	if k, ok := t.rows[id]; ok {
		return k
	}
	return t.recent.get(id)
}
