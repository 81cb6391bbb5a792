package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/test/chaos/history"
)

// load submits tasks at a steady pace until the context ends: short and long ones, some that are cancelled, that are
// late for their deadline or their timeout, that do not stop when they are told to, and some that people pause, update
// and resume.
func (w *world) load(ctx context.Context, prefix string, random *rand.Rand, wishes chan<- string) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for round := 0; ; round++ {
		id := func(kind string) string { return fmt.Sprintf("%s-%05d-%s", prefix, round, kind) }
		var list []client.NewTask
		for i := range 8 {
			list = append(list, newTask(id(fmt.Sprint("q", i)), quick, random.IntN(50)))
		}
		special := newTask(id("s"), slow, 500+random.IntN(3500))
		wish := func() {}
		switch round % 6 {
		case 0:
			wish = func() { w.cancel(ctx, special.ID) }
		case 1:
			special.DeadlineDateTime = time.Now().Add(time.Duration(500+random.IntN(3000)) * time.Millisecond).UnixMilli()
			w.allow(special.ID, func(m *history.May) { m.Fail = "deadline" })
		case 2:
			special.TimeoutMs, special.MaxAttempts, special.Backoff = int64(300+random.IntN(2000)), new(2), &client.NewBackoff{BaseMs: 50, Factor: 1, MaxMs: 50}
			w.allow(special.ID, func(m *history.May) { m.Fail = "timeoutMs" })
		case 3:
			special.ClassName, special.Attachments = stubborn, map[string]int{"ms": 200 + random.IntN(2000)}
			w.allow(special.ID, func(m *history.May) { m.Overlap, m.Fail = true, "abandoned" })
			wish = func() { w.cancel(ctx, special.ID) }
		case 4:
			special.ClassName = inSteps
			wish = func() {
				select {
				case wishes <- special.ID:
				default: // people have enough to do
				}
			}
		}
		if w.offer(ctx, append(list, special)) == nil {
			wish()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// people pause, update and resume tasks, until the context ends. Some pauses they forget: see resumeAll.
func (w *world) people(ctx context.Context, random *rand.Rand, wishes <-chan string) {
	for version := 1; ; version++ {
		var id string
		select {
		case id = <-wishes:
		case <-ctx.Done():
			return
		}
		for range 1 + random.IntN(4) {
			w.wish(ctx, id, random.IntN(4), version)
			w.rest(ctx, time.Duration(random.IntN(500))*time.Millisecond)
		}
	}
}

// wish asks one thing of a task. It may be refused, for the task has ended or nobody answers.
func (w *world) wish(ctx context.Context, id string, what, version int) {
	api := w.controllers()[version%controllers].api
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	switch what {
	case 0, 1:
		_, _ = api.Pause(ctx, id)
	case 2:
		_, _ = api.Resume(ctx, id)
	default:
		_, _ = api.Update(ctx, id, map[string]int{"ms": 100 * version % 3000})
	}
}

// rest waits, or returns when the context ends.
func (w *world) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// resumeAll lets the tasks of a prefix go on that people have paused.
func (w *world) resumeAll(prefix string) {
	w.T.Helper()
	w.Eventually(recoverLimit, "what was paused goes on", func(ctx context.Context) (bool, string) {
		changed := 0
		for next := ""; ; {
			got, err := w.leader().api.Bulk(ctx, client.Bulk{Action: "resume", Filter: client.BulkFilter{IDPrefix: prefix, ClassName: inSteps}, Next: next})
			if err != nil {
				return false, err.Error()
			}
			changed += got.Changed
			if next = got.Next; next == "" {
				return changed == 0, fmt.Sprint(changed, " were still paused")
			}
		}
	})
}
