package sqlite

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// plan is how SQLite carries a statement out.
func plan(t *testing.T, s *Store, sql string) string {
	t.Helper()
	values := make([]driver.Value, strings.Count(sql, "?"))
	for i := range values {
		values[i] = int64(1)
	}
	var steps []string
	for _, row := range s.sql(t, "EXPLAIN QUERY PLAN "+sql, values...) {
		steps = append(steps, row[strings.LastIndexByte(row, '|')+1:])
	}
	return strings.Join(steps, "\n")
}

// TestPlans: every statement that the flows repeat goes by its index, looks at no row that it does not need, and sorts
// nothing.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	list := func(f store.Filter) string {
		what := newSearch(&f)
		return what.page()
	}
	for name, c := range map[string]struct{ sql, want string }{
		"what waits, itself":        {inList(pendingRows, 4), "USING INTEGER PRIMARY KEY (rowid=?)"},
		"the next queue":            {nextQueue, "USING COVERING INDEX tasks_queue (not_before=? AND queue>?)"},
		"the next in a queue":       {nextInQueue, "USING COVERING INDEX tasks_queue (not_before=? AND (queue,created,id)>(?,?,?))"},
		"waiting, from the head":    {queueHead, "USING COVERING INDEX tasks_queue (not_before=? AND queue=?)"},
		"waiting, behind a place":   {queueBehind, "USING COVERING INDEX tasks_queue (not_before=? AND queue=? AND (created,id)>(?,?))"},
		"depths":                    {countQueues, "USING COVERING INDEX tasks_queue (not_before=? AND queue>?)"},
		"who has a permit of a key": {holdsKeyPermit, "USING INDEX tasks_permit (key_permit=?)"},
		"who has one of a pool":     {holdsPoolPermit, "USING INDEX tasks_pool (pool_permit=?)"},
		"what is due next":          {nextDue, "USING COVERING INDEX tasks_queue (not_before>?)"},
		"promote":                   {promote, "USING COVERING INDEX tasks_queue (not_before>? AND not_before<?)"},
		"overdue":                   {overdue, "USING INDEX tasks_deadline (deadline<?)"},
		"what is overdue next":      {nextOverdue, "USING INDEX tasks_deadline (deadline>?)"},
		"apply":                     {inList(guarded, 4), "USING INDEX tasks_id (id=?)"},
		"update":                    {"UPDATE tasks SET status = ? WHERE n = ?", "USING INTEGER PRIMARY KEY (rowid=?)"},
		"mark bad":                  {markBad, "USING INTEGER PRIMARY KEY (rowid=?)"},
		"get":                       {inList(tasksByID, 4), "USING INDEX tasks_id (id=?)"},
		"what has the key":          {taskByKey, "USING INDEX tasks_key (key=?)"},
		"what has the id":           {taskByID, "USING INDEX tasks_id (id=?)"},
		"known ids":                 {inList(knownIDs, 4), "USING COVERING INDEX tasks_id (id=?)"},
		"known keys":                {inList(knownKeys, 4), "USING COVERING INDEX tasks_key (key=?)"},
		"active":                    {active, "USING INDEX tasks_status (status=? AND (created,id)>(?,?))"},
		"desired":                   {desired, "USING INDEX tasks_desired (desired>?)"},
		"purge":                     {purge, "USING INDEX tasks_id (id=?)"},
		"expire":                    {expire, "USING INDEX tasks_ended (updated<?)"},
		"counts":                    {countAll, "SCAN tasks USING COVERING INDEX tasks_status"}, // once, at Open
		"list":                      {list(store.Filter{}), "USING COVERING INDEX tasks_status (status=? AND (created,id)<(?,?))"},
		"list of a status":          {list(store.Filter{Status: []task.Status{task.Failed}}), "USING COVERING INDEX tasks_status (status=? AND (created,id)<(?,?))"},
		"list of a prefix":          {list(store.Filter{IDPrefix: "a"}), "USING COVERING INDEX tasks_status (status=? AND (created,id)<(?,?))"},
		"list of a class":           {list(store.Filter{ClassName: "c"}), "USING INDEX tasks_status (status=? AND (created,id)<(?,?))"},
		"list of an executor":       {list(store.Filter{Executor: "n"}), "USING COVERING INDEX tasks_status (status=? AND (created,id)<(?,?))"},
		"tasks of a list":           {inList(tasksByRow, 4), "USING INTEGER PRIMARY KEY (rowid=?)"},
		"positions":                 {readPositions, "USING PRIMARY KEY (topic=?)"},
	} {
		got := plan(t, s, c.sql)
		if !strings.Contains(got, c.want) || strings.Contains(got, "TEMP B-TREE") || strings.Contains(got, "AUTOMATIC") ||
			name != "counts" && strings.Contains(got, "SCAN tasks") {
			t.Errorf("%s: want %s; the plan is\n%s\nof %s", name, c.want, got, c.sql)
		}
	}
}

// TestStatementsAreFew: the filters of List make many statements, and a connection keeps a bounded number.
func TestStatementsAreFew(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	mustCreate(t, s, waits(1))
	for set := range task.Statuses(128) {
		if set == 0 {
			continue
		}
		for _, f := range []store.Filter{{}, {ClassName: "demo.echo"}, {IDPrefix: "t", Total: true}} {
			f.Status, f.Limit = set.List(), 1
			page, err := s.List(t.Context(), f)
			if err != nil || len(page.Tasks) == 1 != set.Has(task.Created) {
				t.Fatalf("%+v: %v, %v", f, page, err)
			}
		}
	}
	for range readers {
		c := <-s.idle
		if len(c.stmts) > maxStatements {
			t.Errorf("%d statements", len(c.stmts))
		}
		s.idle <- c
	}
}
