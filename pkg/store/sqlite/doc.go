// Package sqlite is the store in one file on this machine, by SQLite (modernc.org/sqlite: pure Go, no cgo): for `skalds
// dev --data` and for a small installation with one controller.
//
// Invariants:
//
//   - The majority is one machine. A call that returned without an error outlives the process, however it ends; with
//     SyncFull, which is the default, a power cut too. With SyncNormal a power cut, or a crash of the operating system,
//     may take the last transactions, those since the log was last brought into the file or longer; what is left is
//     whole, as it was at some moment.
//   - One process at a time has the file open, guarded by a lock file. So what is kept in memory (the counts) is right,
//     and whoever led according to the file is dead when it is opened.
//   - One goroutine writes. Calls that come in while it is busy share the next transaction, up to a bound, and none
//     waits for anything else. A call that cannot be carried out fails alone.
//   - Reads go by connections of their own, and see every write that was acknowledged.
//   - What a claim changes is on the disk when it is acknowledged, but not yet in the tasks' rows: a read of tasks has
//     it written there before, and so waits for one write at the most, if there are such claims. Queues and Waiting do
//     not.
//   - What is kept in memory of rows is what the file says, or what is noted in it; both are bounded. Nothing is lost
//     with it.
//   - A change means what [task.Change.Apply] says, since that is what is called, on the row as it is inside the
//     writing transaction.
//   - Every read that the flows repeat goes by an index, as a test of SQLite's query plans shows.
//   - The schema has a version (user_version); it is brought up to date at Open, forwards only. A newer one is refused.
//
// # What serves what
//
//	tasks_id         Get, Apply, Purge, Create's look at what exists
//	tasks_key        Create's look at what exists
//	tasks_permit     Apply: who holds a permit of a concurrency key
//	tasks_pool       Apply: who holds a permit of a pool
//	tasks_queue      Queues, Waiting in its order, Depths, Promote
//	tasks_status     List in its order, Active, the counts at Open
//	tasks_desired    Desired
//	tasks_deadline   Overdue
//	tasks_ended      Expire
//
// A List by executor, by class name or by a prefix of the id passes over tasks that it does not return; it holds nobody
// up meanwhile, and ends with its context. The room of tasks that were removed is used again, but the file does not
// become smaller.
package sqlite
