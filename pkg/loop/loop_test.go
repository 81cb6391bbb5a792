package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble is a runner in a bubble of fake time, and what it has logged.
type bubble struct {
	loop.Runner
	log   *bytes.Buffer
	began time.Time
}

// wall is the machine's clock but for Boot, which a bubble does not fake.
type wall struct {
	clock.System
	began time.Time
}

func (w wall) Boot() time.Duration { return time.Since(w.began) }

func inBubble(t *testing.T, f func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{log: &bytes.Buffer{}, began: time.Now()}
		b.Runner = loop.Runner{Driver: loop.System{Clock: wall{began: b.began}}, Log: slog.New(slog.NewTextHandler(b.log, nil)),
			Jitter: func() float64 { return 0 }}
		f(t, b)
	})
}

var errFailed = errors.New("it failed")

// failedAt is a step that fails and wants the next one after this time all the same.
type failedAt time.Duration

// script returns a step that does, one after the other, what it is given, and then ends the loop. It notes when each
// step ran.
func script(b *bubble, at *[]time.Duration, list ...any) func(context.Context, loop.Wake) (loop.Next, error) {
	return func(context.Context, loop.Wake) (loop.Next, error) {
		*at = append(*at, time.Since(b.began))
		if len(list) == 0 {
			return loop.Done(), nil
		}
		now := list[0]
		list = list[1:]
		switch now := now.(type) {
		case error:
			return loop.Next{}, now
		case failedAt:
			return loop.After(time.Duration(now)).Regardless(), errFailed
		}
		return now.(loop.Next), nil
	}
}

func TestAStepSaysWhenTheNextOneRuns(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		list []any
		want []time.Duration
	}{
		"at once":                            {[]any{loop.Next{}, loop.After(0), loop.After(-s)}, []time.Duration{0, 0, 0, 0}},
		"after a time":                       {[]any{loop.After(s), loop.After(2 * s)}, []time.Duration{0, s, 3 * s}},
		"after a rest":                       {[]any{loop.Rest(s)}, []time.Duration{0, s}},
		"a rest counts as part of the wait":  {[]any{loop.After(3 * s).RestFirst(s)}, []time.Duration{0, 3 * s}},
		"a rest may be longer than the wait": {[]any{loop.After(s).RestFirst(3 * s)}, []time.Duration{0, 3 * s}},
		"a failure doubles the pause":        {[]any{errFailed, errFailed, errFailed, errFailed}, []time.Duration{0, s, 3 * s, 7 * s, 11 * s}},
		"a success ends the doubling":        {[]any{errFailed, errFailed, loop.Next{}, errFailed}, []time.Duration{0, s, 3 * s, 3 * s, 4 * s}},
		"a step may keep its own pace":       {[]any{failedAt(3 * s), errFailed}, []time.Duration{0, 3 * s, 5 * s}},
		"but not one that shows nothing":     {[]any{errFailed, loop.Next{}.KeepBackoff(), errFailed}, []time.Duration{0, s, s, 3 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bubble) {
				var at []time.Duration
				b.Run(t.Context(), loop.Loop{Step: script(b, &at, tt.list...), Backoff: loop.Backoff{First: s, Max: 4 * s}})
				if fmt.Sprint(at) != fmt.Sprint(tt.want) {
					t.Errorf("steps at %v, want %v", at, tt.want)
				}
			})
		})
	}
}

func TestAWakeRunsTheNextStepUnlessTheLoopRests(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		first loop.Next
		want  time.Duration
		woken bool
	}{
		"waits":                  {loop.After(10 * s), 2 * s, true},
		"waits for nothing else": {loop.OnWake(), 2 * s, true},
		"rests":                  {loop.Rest(10 * s), 10 * s, false},
		"rests first":            {loop.After(10 * s).RestFirst(5 * s), 5 * s, true},
		"rests for all the wait": {loop.After(3 * s).RestFirst(5 * s), 5 * s, true},
		"wants to run at once":   {loop.After(0).RestFirst(5 * s), 5 * s, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bubble) {
				a, c := loop.NewWake(), loop.NewWake()
				time.AfterFunc(2*s, c.Signal)
				b.Run(t.Context(), loop.Loop{Wakes: []loop.Wake{a, c}, First: tt.first, Step: func(_ context.Context, by loop.Wake) (loop.Next, error) {
					if got := time.Since(b.began); got != tt.want || (by == c) != tt.woken {
						t.Errorf("woken %t after %v, want %t after %v", by == c, got, tt.woken, tt.want)
					}
					return loop.Done(), nil
				}})
				if c.Take() == tt.woken {
					t.Error("a wake is lost, or counts twice")
				}
			})
		})
	}
}

func TestAFailureIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		l    loop.Loop
		err  error
		want []string
	}{
		"a failure": {loop.Loop{Name: "x", Failure: "x failed"}, errFailed, []string{
			`level=WARN msg="x failed" error="it failed"`, `level=INFO msg="works again" loop=x failures=2`,
		}},
		"one that is silent":      {loop.Loop{Name: "x", Failure: "x failed"}, loop.Silent(errFailed), nil},
		"of a quiet loop":         {loop.Loop{Name: "x", Failure: "x failed", Quiet: true}, errFailed, nil},
		"of one that has no text": {loop.Loop{Name: "x"}, errFailed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bubble) {
				var at []time.Duration
				tt.l.Step = script(b, &at, tt.err, tt.err, loop.Next{}, loop.Next{})
				b.Run(t.Context(), tt.l)
				lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
				if len(tt.want) == 0 && b.log.Len() == 0 {
					return
				}
				for i, line := range lines {
					if i >= len(tt.want) || !strings.HasSuffix(line, tt.want[i]) {
						t.Errorf("logged %q, want %q", lines, tt.want)
					}
				}
			})
		})
	}
}

func TestAStepHasADeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.Run(t.Context(), loop.Loop{Deadline: time.Second, Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			<-ctx.Done()
			return loop.Done(), ctx.Err()
		}})
		if took := time.Since(b.began); took != time.Second {
			t.Errorf("the step took %v", took)
		}
	})
}

func TestTheEndOfTheContextEndsALoop(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]any{"that waits": loop.OnWake(), "that rests": loop.Rest(time.Hour), "that pauses": errFailed, "that is busy": loop.Next{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bubble) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended, steps := false, 0
				b.Run(ctx, loop.Loop{Failure: "failed", Backoff: loop.Backoff{First: time.Hour}, Step: func(context.Context, loop.Wake) (loop.Next, error) {
					if steps++; steps == 1 {
						time.AfterFunc(time.Minute, cancel)
					}
					if steps > 1 && ctx.Err() == nil {
						<-ctx.Done()
					}
					if err, failed := next.(error); failed {
						return loop.Next{}, err
					}
					return next.(loop.Next), nil
				}, End: func(ctx context.Context) { ended = ctx.Err() != nil }})
				if took := time.Since(b.began); !ended || took != time.Minute {
					t.Errorf("ended %t after %v", ended, took)
				}
			})
		})
	}
}

func TestAGroupEndsTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		g := b.Group(t.Context())
		ended := make(chan string, 3)
		waits := func(name string) loop.Loop {
			return loop.Loop{Name: name, First: loop.OnWake(), End: func(context.Context) { ended <- name }}
		}
		g.Start(waits("a"), loop.Loop{Name: "b", Step: func(context.Context, loop.Wake) (loop.Next, error) {
			g.Start(waits("c")) // a loop of the group may start others
			return loop.Done(), nil
		}, End: func(context.Context) { ended <- "b" }})
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatalf("%d have ended, want the one that was done", len(ended))
		}
		g.Stop()
		if len(ended) != 3 {
			t.Errorf("%d have ended when Stop returned, want 3", len(ended))
		}
		g.Stop() // a second time is legal
	})
}

func TestSystemWaitsByItsClock(t *testing.T) {
	t.Parallel()
	c := clocktest.New(time.Unix(0, 0))
	d, done := loop.System{Clock: c}, make(chan bool)
	go func() { done <- loop.Sleep(t.Context(), d, time.Minute) }()
	c.BlockUntil(1)
	c.Advance(time.Minute)
	if !<-done {
		t.Error("Sleep says that the context has ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if loop.Sleep(ctx, d, time.Minute) {
		t.Error("Sleep does not say that the context has ended")
	}
	defer func() {
		if recover() == nil {
			t.Error("a wait for more wakes than there may be is no error")
		}
	}()
	d.Wait(t.Context(), 0, nil, nil, nil, nil)
}

// Pauses stay between half of the first and the longest one, and never get shorter from one failure to the next, but
// for their jitter.
func TestPausesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "first"))
		longest := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "longest"))
		b := loop.Backoff{First: first, Max: longest}
		n := rapid.IntRange(1, 1_000_000).Draw(t, "failures")
		jitter := rapid.Float64Range(0, 0.999999).Draw(t, "jitter")
		if first == 0 {
			first = loop.DefaultFirst
		}
		if longest == 0 {
			longest = max(first, loop.DefaultMax)
		}
		got := b.Pause(n, jitter)
		if got < min(first, longest)/2 || got > longest {
			t.Errorf("%v after %d failures, of %v to %v", got, n, first, longest)
		}
		if full := b.Pause(n+1, 0); full < b.Pause(n, 0) {
			t.Errorf("the pause gets shorter: %v", full)
		}
	})
}

func BenchmarkStep(b *testing.B) {
	r := loop.NewRunner(clock.System{}, slog.New(slog.DiscardHandler))
	wake, left := loop.NewWake(), b.N
	b.ReportAllocs()
	r.Run(b.Context(), loop.Loop{Wakes: []loop.Wake{wake}, Step: func(context.Context, loop.Wake) (loop.Next, error) {
		if left--; left < 0 {
			return loop.Done(), nil
		}
		wake.Signal()
		return loop.OnWake(), nil
	}})
}
