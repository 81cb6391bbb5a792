package quarantine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
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
	q := quarantine.New(publisher(func(_ context.Context, topic string, partition int, records []kafka.Record) error {
		if topic != events.TopicQuarantine || partition != 0 {
			t.Errorf("it went to %s/%d", topic, partition)
		}
		got = append(got, records...)
		return nil
	}), clocktest.New(at), slog.New(slog.NewTextHandler(&log, nil)))
	q.Put(t.Context(), &record, events.TopicStatus, errEnd)
	if len(got) != 1 || string(got[0].Key) != "task.status/3/17" {
		t.Fatalf("%d records: %+v", len(got), got)
	}
	var e events.Quarantine
	err := json.Unmarshal(got[0].Value, &e)
	if err != nil || e.Version != events.Version || e.Topic != events.TopicStatus || e.Partition != 3 || e.Offset != 17 || e.Reason != "unexpected end" || e.At != at.UnixMilli() ||
		string(e.Key) != "k" || string(e.Value) != "{" {
		t.Errorf("%+v, %v", e, err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `topic=task.status partition=3 offset=17 reason="unexpected end"`) {
		t.Errorf("the log says %s", log.String())
	}
}

func TestCopiesThatFailHoldNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tries, c := 0, clocktest.New(time.Now())
		q := quarantine.New(publisher(func(ctx context.Context, _ string, _ int, _ []kafka.Record) error {
			tries++
			<-ctx.Done()
			return ctx.Err()
		}), c, slog.New(slog.NewTextHandler(&log, nil)))
		began := time.Now()
		for range 1000 {
			q.Put(t.Context(), &record, events.TopicAssign, errEnd)
		}
		if passed := time.Since(began); passed != time.Second || tries != 1 {
			t.Errorf("%d tries, and it waited %v, want 1 and 1s", tries, passed)
		}
		if n := strings.Count(log.String(), "the event was not copied to quarantine"); n != 1000 {
			t.Errorf("the log names %d of 1000", n)
		}
		c.Advance(10 * time.Second)
		q.Put(t.Context(), &record, events.TopicAssign, errEnd)
		if tries != 2 {
			t.Errorf("%d tries after ten seconds, want another one", tries)
		}
	})
}
