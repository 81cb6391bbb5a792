package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/crash"
)

// c11 ends the leader at each of the named places, one after the other, while tasks flow.
func c11(w *world, prefix string) {
	dir := w.T.TempDir()
	for _, c := range w.controllers() {
		c.terminate()
		c.awaitEnd()
		c.armed = filepath.Join(dir, c.name)
		c.start()
	}
	w.T.Cleanup(func() { // the other cases have the real program
		for _, c := range w.controllers() {
			c.armed = ""
			c.kill()
		}
	})
	for _, c := range w.controllers() {
		w.Ready(c.api)
	}
	ctx, cancel := context.WithCancel(w.T.Context())
	defer cancel()
	var flowing sync.WaitGroup
	flowing.Go(func() { w.flow(ctx, prefix) })
	slowest := time.Duration(0)
	for i, at := range crash.Points() {
		slowest = max(slowest, w.crash(at, fmt.Sprintf("%s-probe-%02d", prefix, i)))
	}
	cancel()
	flowing.Wait()
	all := w.check(recoverLimit, prefix)
	w.T.Logf("%d tasks, %d ran again, while a leader died at each of %d places; the next one was at work after %s at most",
		len(all), reruns(w.runsOf(prefix)), len(crash.Points()), slowest.Round(time.Millisecond))
}

// flow submits tasks until the context ends.
func (w *world) flow(ctx context.Context, prefix string) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		_ = w.offer(ctx, batch(6, fmt.Sprintf("%s-%05d", prefix, i), quick, 10)) // what was not acknowledged is not looked for
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// crash has the leader come to a place and be gone there, and gives how long it took until a new task had ended.
func (w *world) crash(at crash.Point, probe string) time.Duration {
	w.T.Helper()
	victim, other := w.leader(), w.follower()
	var lost *member
	switch at {
	case crash.AfterTakeover, crash.AfterAnnouncing:
		victim, other = other, victim
		w.arm(victim, at)
		other.kill()
	case crash.BeforeGivingAway, crash.AfterGivingAway:
		w.submit(4*nodes, probe+"-held", slow, 3000)
		lost = w.holder(probe + "-held")
		w.arm(victim, at)
		lost.kill()
	default:
		w.arm(victim, at)
	}
	select {
	case <-victim.proc.Done():
	case <-time.After(recoverLimit):
		w.T.Fatalf("%s did not come to the place %q", victim.name, at)
	}
	began := time.Now()
	if code := victim.proc.ExitCode(); code != crash.Code {
		w.T.Fatalf("%s ended with code %d, not at the place %q:\n%s", victim.name, code, at, victim.proc.Log())
	}
	victim.kill() // notes its end
	victim.start()
	if !other.proc.Running() {
		other.start()
	}
	w.submit(3, probe, quick, 1)
	w.ended(recoverLimit, probe)
	took := time.Since(began)
	w.T.Logf("the leader died %s: new tasks had ended %s later", at, took.Round(time.Millisecond))
	if lost != nil {
		lost.start()
		w.online(lost)
		w.seen()
	}
	return took
}

// holder waits until tasks of a prefix run, and gives a node that runs one.
func (w *world) holder(prefix string) *member {
	w.T.Helper()
	var found *member
	w.Eventually(recoverLimit, "tasks "+prefix+" run", func(context.Context) (bool, string) {
		for _, t := range w.stored(prefix) {
			if t.LifecycleStatus == task.Running {
				found = w.member(t.Executor)
			}
		}
		return found != nil, "none does"
	})
	return found
}

func (w *world) arm(c *member, at crash.Point) {
	w.T.Helper()
	if err := os.WriteFile(c.armed, []byte(at), 0o600); err != nil {
		w.T.Fatal(err)
	}
}
