package quarantine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
)

// publisher is a bus that does what a test says.
type publisher func(ctx context.Context, topic string, partition int, records []kafka.Record) error

func (p publisher) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	return p(ctx, topic, partition, records)
}

var (
	record = kafka.Record{Partition: 3, Offset: 17, Key: []byte("k"), Value: []byte("{")}
	errEnd = errors.New("unexpected end")
)

func TestPut(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	var log bytes.Buffer
	var got []kafka.Record
	quarantine.Put(t.Context(), publisher(func(_ context.Context, topic string, partition int, records []kafka.Record) error {
		if topic != events.TopicQuarantine || partition != 0 {
			t.Errorf("it went to %s/%d", topic, partition)
		}
		got = append(got, records...)
		return nil
	}), slog.New(slog.NewTextHandler(&log, nil)), at, events.TopicStatus, &record, errEnd)
	if len(got) != 1 || string(got[0].Key) != "task.status/3/17" {
		t.Fatalf("%d records: %+v", len(got), got)
	}
	q, err := events.DecodeQuarantine(got[0].Value)
	if err != nil || q.Topic != events.TopicStatus || q.Partition != 3 || q.Offset != 17 || q.Reason != "unexpected end" || q.At != at.UnixMilli() ||
		string(q.Key) != "k" || string(q.Value) != "{" {
		t.Errorf("%+v, %v", q, err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `topic=task.status partition=3 offset=17 reason="unexpected end"`) {
		t.Errorf("the log says %s", log.String())
	}
}

func TestACopyThatFailsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began := time.Now()
		quarantine.Put(t.Context(), publisher(func(ctx context.Context, _ string, _ int, _ []kafka.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}), slog.New(slog.NewTextHandler(&log, nil)), began, events.TopicAssign, &record, errEnd)
		if passed := time.Since(began); passed != time.Second {
			t.Errorf("it waited %v, want 1s", passed)
		}
		if !strings.Contains(log.String(), "the event was not copied to quarantine") {
			t.Errorf("the log says %s", log.String())
		}
	})
}
