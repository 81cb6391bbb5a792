// Package mongo is the store in MongoDB: the tasks in the collection `tasks` of the given database, beside them the
// collections `leader`, `positions` and `settings`.
//
// It asks little of the server, so that compatible ones (Amazon DocumentDB, Azure) serve too: no transaction, no change
// stream, no update pipeline; only single documents that are compared and set, in unordered bulk writes. Writes wait
// for the majority, reads are of what the majority has, from the primary, whatever the URI says; each call ends within
// store.OpTimeout. Whether the driver repeats a write whose reply got lost is up to the URI (retryWrites); every write
// may be repeated without harm. A caller that gives up does not cut its command off at once, which would cost the
// connection, and the leader's renewals have connections of their own (see bounded, leasePool).
//
// Other programs write into the collection, too. Invariants:
//
//   - A document of the Python Skalds, or one that a script made with only its fields, is a task like any other: null
//     and missing are the same, whole numbers may be of any numeric type, fields that are not ours stay as they are.
//   - A document that waits and cannot be read, or can never run, is marked Failed with the reason, compare-and-set,
//     and stops nothing.
//   - What waits is found by its queue (see task.Task.Queue), a field of the document that is not one of the task's,
//     and a notBefore that is 0 and not missing. Documents of other programs get both when Queues first sees them, and
//     a right queue when Waiting finds a wrong one.
//   - Labels that are a string are a selector.
//   - JSON goes in and comes out as it was (see json.go).
//
// # Indexes, and what they serve
//
//	id (unique)                                     Get, Apply, Purge, Create's and Known's look at what exists, List by a prefix
//	idempotencyKey (unique, sparse)                 Create's look at what exists
//	keyPermit (unique, sparse)                      that no two tasks have the same
//	poolPermit (unique, sparse)                     likewise
//	lifecycleStatus, mode, notBefore, queue,        Queues, Depths and Waiting, in its order; Promote; the search for documents without
//	  createDateTime, id                            a queue and for bad ones; Active and Counts by its first field
//	lifecycleStatus, deadlineDateTime               Overdue
//	lifecycleStatus, updateDateTime                 Expire
//	desired (sparse)                                Desired
//	executor, lifecycleStatus                       List of one executor
//	createDateTime desc, id desc                    List in its order; filters without an index pass over what does not match
//
// There is none by claimId: who won a claim is read back by id.
package mongo
