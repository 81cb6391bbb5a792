package store

import "context"

// Queues are the waiting tasks (Created, Passive, without notBefore), grouped by queue (see [task.Task.Queue]). What
// keeps the head of a queue waiting keeps the whole queue waiting, so the dispatcher never reads through tasks that
// cannot run to find one that can.
type Queues interface {
	// Queues lists the queues with waiting tasks after the given name ("" = from the first), in the byte order of their
	// names, at most limit of them (1..MaxBatch). A page may be shorter; More reports whether another may follow.
	//
	// A document of another program that does not decode is marked Failed with the reason, and is in Bad. A valid new
	// one is in its queue after one of the next calls with the name "".
	Queues(ctx context.Context, after string, limit int) (QueuePage, error)
	// Waiting reads tasks of one queue after the given place, in the order (createDateTime, id), at most limit of them
	// (1..MaxBatch). A queue that does not exist has none. A document that does not decode is marked Failed with the
	// reason, and is in Bad.
	Waiting(ctx context.Context, queue string, after Place, limit int) (PendingPage, error)
	// Depths returns the number of waiting tasks of each queue, for at most limit (1..MaxBatch) queues after the given
	// name. It may read every waiting task.
	Depths(ctx context.Context, after string, limit int) (map[string]int64, error)
}

// QueuePage is a page of queues.
type QueuePage struct {
	Names []string
	Bad   []BadDocument
	More  bool // whether there may be a next page, after the last name
}
