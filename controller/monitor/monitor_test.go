package monitor_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestRedisDownStopsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	b.registry.SetDown(true)
	b.clock.Advance(lostTimeout + resend)
	if _, err := b.m.Round(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if len(b.wire.commands) != 1 || len(b.wire.tasks) != 1 {
		t.Errorf("%d commands, %d claims sent again, want 1 of each", len(b.wire.commands), len(b.wire.tasks))
	}
	b.registry.SetDown(false)
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("Redis came back and the task is %s at once", got.LifecycleStatus)
	}
}

func TestEndedTasksAreRemovedAfterTheirRetention(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var page []task.Task
	for i := range store.MaxBatch {
		page = append(page, task.Task{ID: "old-" + string(rune('a'+i%26)) + time.Duration(i).String(), Mode: task.ModePassive, LifecycleStatus: task.Finished, UpdateDateTime: 1})
	}
	if _, err := b.store.Create(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Create(t.Context(), []task.Task{{ID: "young", Mode: task.ModePassive, LifecycleStatus: task.Finished, UpdateDateTime: b.clock.Now().UnixMilli()}}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	b.beat(t)
	b.round(t)
	b.round(t)
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 1 {
		t.Fatalf("%d ended tasks are left, want the young one", counts[task.Finished])
	}
}

func TestRunLooksAtOnceWhenItIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	ctx, cancel := context.WithCancel(t.Context())
	b.wire.ordered = make(chan struct{}, 1)
	membership, desired, done := make(loop.Wake), make(loop.Wake), make(chan struct{})
	go func() {
		defer close(done)
		loop.NewRunner(b.clock, slog.New(slog.DiscardHandler)).Run(ctx, b.m.Loop(membership, desired, time.Hour))
	}()
	membership <- struct{}{}
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	desired <- struct{}{} // taken when the round before it is over
	<-b.wire.ordered      // the desired state was sent
	cancel()
	<-done
}
