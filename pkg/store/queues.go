package store

import "context"

// Queues are the tasks that wait (Created, Passive, without notBefore), by their queues (see [task.Task.Queue]). What
// keeps the head of a queue waiting keeps all of it waiting, so whoever dispatches never has to read through tasks that
// cannot run to find one that can.
type Queues interface {
	// Queues lists the queues in which tasks wait, in the byte order of their names, those after the given name ("" =
	// from the first), at most limit of them (1..MaxBatch); it may be fewer, and More reports whether that was all. A
	// document of another program that does not decode is marked Failed with the reason and is in Bad; one that is new
	// to Skalds is in its queue from a call with the name "" on, or a later one.
	Queues(ctx context.Context, after string, limit int) (QueuePage, error)
	// Waiting reads tasks of one queue in the order (createDateTime, id), at most limit of them (1..MaxBatch), those
	// after the given place; none where there is no such queue. A document that does not decode is marked Failed with
	// the reason and is in Bad.
	Waiting(ctx context.Context, queue string, after Place, limit int) (PendingPage, error)
	// Depths says how many tasks wait in each queue, for at most limit (1..MaxBatch) queues after the given name. It
	// may look at every task that waits.
	Depths(ctx context.Context, after string, limit int) (map[string]int64, error)
}

// QueuePage is a page of queues.
type QueuePage struct {
	Names []string
	Bad   []BadDocument
	More  bool // whether there may be a next page, after the last name
}
