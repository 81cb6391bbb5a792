package mongo

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	links "github.com/skalds-go/skalds/test/proxy"
	"github.com/skalds-go/skalds/test/services"
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

// All connections there may be are busy for long: the leader's renewal does not stand in that queue.
func TestIntegrationC46_ARenewalWaitsForNobody(t *testing.T) {
	t.Parallel()
	server, err := url.Parse(services.Mongo(t))
	if err != nil {
		t.Fatal(err)
	}
	link := links.New(t, server.Host)
	s := open(t, "mongodb://"+link.Addr()+"/?maxPoolSize=1")
	link.Delay(50 * time.Millisecond)
	defer link.Delay(0)
	const callers = 40
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	first := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range callers {
		all.Go(func() {
			_, _ = s.Get(ctx, []string{"t"})
			if done.Add(1) == 1 {
				close(first)
			}
		})
	}
	<-first
	ok, err := s.SwapLeader(t.Context(), store.Leader{}, store.Leader{Holder: "me", Term: 1, Counter: 1})
	if behind := done.Load(); !ok || err != nil || behind > callers/2 {
		t.Errorf("a renewal came after %d of %d other calls: %v, %v", behind, callers, ok, err)
	}
}
