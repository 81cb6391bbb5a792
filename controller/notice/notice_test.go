package notice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/notice"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
)

// bus keeps the notices that were published.
type bus struct {
	notices []events.Status
	err     error
}

func (b *bus) Publish(_ context.Context, topic string, _ int, records []kafka.Record) error {
	if b.err != nil {
		return b.err
	}
	if topic != events.TopicStatus {
		return fmt.Errorf("published to %s", topic)
	}
	for _, r := range records {
		s, err := events.DecodeStatus(r.Value)
		if err != nil {
			return err
		}
		b.notices = append(b.notices, s)
	}
	return nil
}

// A notice names at most as many tasks as an event may, and each task once.
func TestANoticeNamesUpdatedTasksUpToTheLimit(t *testing.T) {
	t.Parallel()
	b := &bus{}
	n := notice.New(b, clocktest.New(time.UnixMilli(7)), events.DefaultMaxBytes)
	for i := range 2 * events.MaxUpdated {
		n.Updated(fmt.Sprint("t", i))
		n.Updated("t0")
	}
	step := n.Loop().Step
	for range 2 {
		if _, err := step(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.notices) != 2 || b.notices[0].Notice != events.NoticeSubmitted || b.notices[0].At != 7 {
		t.Fatalf("%+v", b.notices)
	}
	if got := len(b.notices[0].Updated); got != events.MaxUpdated {
		t.Errorf("%d tasks in one notice, want %d", got, events.MaxUpdated)
	}
	if got := b.notices[1].Updated; len(got) != 0 {
		t.Errorf("the next notice names %d of them again", len(got))
	}
}

// A notice that fails is not sent again by itself: the leader finds what it would have said.
func TestANoticeThatFailsIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := &bus{err: errors.New("no broker")}
	n := notice.New(b, clocktest.New(time.UnixMilli(7)), events.DefaultMaxBytes)
	n.Stored()
	l := n.Loop()
	if !l.Wakes[0].Take() {
		t.Error("Stored does not wake the loop")
	}
	if _, err := l.Step(t.Context(), l.Wakes[0]); !errors.Is(err, b.err) {
		t.Errorf("%v", err)
	}
	if l.Wakes[0].Take() {
		t.Error("a failure wakes the loop again")
	}
}
