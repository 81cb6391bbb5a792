package mongo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
)

// A command that is given up costs its connection. One that answers soon after its caller has gone must be let answer.
func TestC46_ACallerThatGivesUpDoesNotCutTheCommandOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deadline, gives, answers time.Duration // since the begin; 0 = never
		want                     time.Duration // when the call ends
		err                      error
	}{
		"an answer":                          {0, 0, 200 * time.Millisecond, 200 * time.Millisecond, nil},
		"an answer after the caller gave up": {0, 100 * time.Millisecond, 900 * time.Millisecond, 900 * time.Millisecond, nil},
		"no answer after the caller gave up": {0, 100 * time.Millisecond, 0, 100*time.Millisecond + patience, context.Canceled},
		"no answer":                          {0, 0, 0, store.OpTimeout, context.DeadlineExceeded},
		"no answer by the caller's deadline": {300 * time.Millisecond, 0, 0, 300 * time.Millisecond, context.DeadlineExceeded},
		"a deadline after the caller gave up": {
			300 * time.Millisecond, 100 * time.Millisecond, 0, 300 * time.Millisecond, context.DeadlineExceeded,
		},
		"a deadline that is later than any": {time.Hour, 0, 0, store.OpTimeout, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				caller, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				began := time.Now()
				if tt.deadline > 0 {
					var end context.CancelFunc
					caller, end = context.WithDeadline(caller, began.Add(tt.deadline))
					defer end()
				}
				if tt.gives > 0 {
					time.AfterFunc(tt.gives, giveUp)
				}
				var answer <-chan time.Time
				if tt.answers > 0 {
					answer = time.After(tt.answers)
				}
				ctx, cancel := bounded(caller)
				defer cancel()
				var err error
				select {
				case <-answer:
				case <-ctx.Done():
					err = ctx.Err()
				}
				if took := time.Since(began); took != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("the call ended after %s with %v, want %s and %v", took, err, tt.want, tt.err)
				}
			})
		})
	}
}

func TestNothingIsBegunForACallerThatHasGivenUp(t *testing.T) {
	t.Parallel()
	caller, giveUp := context.WithCancel(t.Context())
	giveUp()
	ctx, cancel := bounded(caller)
	defer cancel()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("the call goes on: %v", ctx.Err())
	}
}
