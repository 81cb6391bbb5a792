package bustest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
)

func publish(t *testing.T, b *bustest.Bus, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := b.Publish(t.Context(), "t", 1, []kafka.Record{{Key: []byte("k"), Value: []byte(v)}}); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, r *bustest.Reader, n int) []string {
	t.Helper()
	var got []string
	for len(got) < n {
		records, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			got = append(got, string(rec.Value))
		}
	}
	return got
}

func TestReaderGivesEachRecordOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := bustest.New(map[string]int{"t": 2})
	publish(t, b, "a", "b")
	fromStart, fromEnd := b.Reader("t", 1, kafka.Earliest()), b.Reader("t", 1, kafka.Latest())
	if got := fromEnd.TryNext(); len(got) != 0 {
		t.Fatalf("a reader at the end got %d records", len(got))
	}
	done := make(chan []string)
	go func() { done <- read(t, fromEnd, 1) }()
	publish(t, b, "c")
	if got := <-done; len(got) != 1 || got[0] != "c" {
		t.Errorf("the waiting reader got %q", got)
	}
	if got := read(t, fromStart, 3); got[0] != "a" || got[1] != "b" || got[2] != "c" {
		t.Errorf("the first reader got %q", got)
	}
	if p := fromStart.Position(); p.Offset != 3 {
		t.Errorf("position %d, want 3", p.Offset)
	}
	ranges, err := b.Offsets(t.Context(), "t", []int{0, 1})
	if err != nil || ranges[0].End != 0 || ranges[1].End != 3 {
		t.Errorf("offsets %v, %v", ranges, err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bustest.New(nil).Reader("missing", 0, kafka.Earliest()).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		written bool
		err     error
		want    int
	}{
		"lost before the log": {false, kafka.ErrNotSent, 0},
		"lost answer":         {true, errors.New("no answer"), 1},
		"success":             {true, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.New(map[string]int{"t": 1})
			b.Fail(func(context.Context, string, int, []kafka.Record) (bool, error) { return tc.written, tc.err })
			if err := b.Publish(t.Context(), "t", 0, []kafka.Record{{}}); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if got := len(b.Records("t")); got != tc.want {
				t.Errorf("%d records, want %d", got, tc.want)
			}
		})
	}
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	b := bustest.New(nil)
	if _, err := b.Partitions(t.Context(), "t"); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("partitions: %v", err)
	}
	err := b.Publish(t.Context(), "t", 0, []kafka.Record{{}})
	if !errors.Is(err, kafka.ErrUnknownTopic) || !errors.Is(err, kafka.ErrNotSent) {
		t.Errorf("publish: %v", err)
	}
	if err := b.Ensure(t.Context(), []kafka.TopicSpec{{Name: "t", Partitions: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Ensure(t.Context(), []kafka.TopicSpec{{Name: "t", Partitions: 3}}); err == nil {
		t.Error("too few partitions pass")
	}
}
