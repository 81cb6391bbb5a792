// Package kafka moves raw bytes to and from Kafka partitions. It knows nothing of the events that the bytes encode.
//
// It speaks the protocol with the message types of segmentio/kafka-go, but with connections of its own rather than
// with that library's Transport, Writer or Reader: a caller of Publish must know whether a record can have reached
// the log, and those hide it (docs/adr has the reasons).
//
// Invariants:
//   - Publish sends at most one produce request, and an error of it is ErrNotSent only when no record of the call has
//     reached or will reach the log. Every other error leaves the outcome unknown.
//   - No goroutine and no timer outlives a call. A client that nobody calls does nothing at all.
//   - Every wait ends with its context, with Client.Close, or after Config.Timeout where the context has no deadline.
//   - Which broker leads a partition is remembered until a request to it fails, and never longer.
//   - A Reader returns each record of its partition in order and at least once. When its log was replaced or cut under
//     it, it goes on from the earliest record there is.
package kafka
