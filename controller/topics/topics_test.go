package topics_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/skalds-go/skalds/controller/topics"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// bus has the topics that were made, unless it is down.
type bus struct {
	made    map[string]int
	down    error
	ensured int
}

func (b *bus) Ensure(_ context.Context, specs []kafka.TopicSpec) error {
	if b.down != nil {
		return b.down
	}
	b.ensured++
	for _, s := range specs {
		b.made[s.Name] = s.Partitions
	}
	return nil
}

func (b *bus) Partitions(_ context.Context, topic string) (int, error) {
	if b.down != nil {
		return 0, b.down
	}
	n, ok := b.made[topic]
	if !ok {
		return 0, kafka.ErrUnknownTopic
	}
	return n, nil
}

func TestTopicsAreMadeOnceAndAnewWhereOneIsGone(t *testing.T) {
	t.Parallel()
	b := &bus{made: map[string]int{}, down: errors.New("no broker")}
	set := topics.New(b, topics.Specs(12, 1, map[string]string{"retention.ms": "1"}), slog.New(slog.DiscardHandler))
	step := set.Loop().Step
	round := func(wantErr bool, wantMade int) {
		t.Helper()
		_, err := step(t.Context(), nil)
		if (err != nil) != wantErr || b.ensured != wantMade {
			t.Errorf("error %v, made %d times, want %d", err, b.ensured, wantMade)
		}
	}
	if set.Err() == nil {
		t.Error("ready before anybody has looked")
	}
	round(true, 0)
	if !errors.Is(set.Err(), b.down) {
		t.Errorf("%v", set.Err())
	}
	b.down = nil
	round(false, 1)
	round(false, 1)
	if b.made[events.TopicAssign] != 12 || b.made[events.TopicQuarantine] != 1 || set.Err() != nil {
		t.Errorf("%v, %v", b.made, set.Err())
	}
	b.down = errors.New("no broker") // for a moment: the topics are as ready as they were
	round(false, 1)
	if b.down = nil; set.Err() != nil {
		t.Errorf("%v", set.Err())
	}
	delete(b.made, events.TopicControl)
	round(false, 2)
	if _, there := b.made[events.TopicControl]; !there || set.Err() != nil {
		t.Errorf("%v, %v", b.made, set.Err())
	}
}
