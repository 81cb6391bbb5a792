package kafka

import (
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

var (
	// ErrNotSent marks an error of Publish after which no record of the call is or will be in the log. An error
	// without this mark leaves it open whether the records were written.
	ErrNotSent = errors.New("not sent")

	// ErrTooLarge marks records that together pass the client's or the broker's limit. It comes with ErrNotSent.
	ErrTooLarge = errors.New("message too large")

	// ErrClosed is returned by every call on a client that was closed.
	ErrClosed = errors.New("kafka client is closed")

	// ErrUnknownTopic means that the cluster has no such topic, or no such partition of it.
	ErrUnknownTopic = errors.New("unknown topic or partition")
)

// certainlyNotWritten reports whether a broker that answers a produce request with this code has, without any doubt,
// not written its records.
//
// Only codes of checks that come before the append are here. Some that sound just as harmless are not, because a
// broker that waits for its followers after the append answers with them too: when it loses the partition's
// leadership (NOT_LEADER_OR_FOLLOWER), the topic (UNKNOWN_TOPIC_OR_PARTITION) or its disk (KAFKA_STORAGE_ERROR)
// meanwhile, the records may already be on the next leader.
func certainlyNotWritten(code kafkago.Error) bool {
	switch code {
	case kafkago.InvalidMessage, // the batch failed its checksum or form
		kafkago.MessageSizeTooLarge,
		kafkago.InvalidTopic,
		kafkago.RecordListTooLarge,
		kafkago.NotEnoughReplicas, // checked before the append; 20, after it, is another matter
		kafkago.InvalidRequiredAcks,
		kafkago.TopicAuthorizationFailed,
		kafkago.ClusterAuthorizationFailed,
		kafkago.InvalidTimestamp,
		kafkago.UnsupportedVersion,
		kafkago.UnsupportedForMessageFormat,
		kafkago.PolicyViolation,
		kafkago.UnsupportedCompressionType,
		kafkago.InvalidRecord:
		return true
	default:
		return false
	}
}

// tooLarge reports whether a broker refused the size of the records.
func tooLarge(code kafkago.Error) bool {
	return code == kafkago.MessageSizeTooLarge || code == kafkago.RecordListTooLarge
}
