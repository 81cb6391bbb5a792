package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/history"
)

// TestChaosCases has one subtest for each case of the field that needs real processes, by the number of the case. They
// share one cluster, which each finds whole.
func TestChaosCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		name string
		run  func(w *world, prefix string)
	}{
		{"C01 a node dies before it has taken what was sent to it", c01},
		{"C03 nothing is sent to a node that is gone", c03},
		{"C05 a node that runs a task of two hours dies", c05},
		{"C09 a node is frozen just before it takes a task", c09},
		{"C11 leaders die at named places while tasks flow", c11},
		{"C16 the leader is cut off from the store alone", c16},
		{"C25 a node is frozen for seven leases and thawed", c25},
		{"C26 a node is cut off from everything", c26},
		{"C27 a node is cut off from one service after the other", c27},
		{"C34 the broker restarts", c34},
		{"C37 processes are told to stop while the broker is cut off", c37},
		{"C43 Redis is stopped again and again", c43},
		{"C44 Redis is killed and forgets all", c44},
		{"C46 callers are in a greater hurry than the store", c46},
		{"C48 all connections to the store end every second", c48},
		{"S8 a node is restarted again and again", s8},
		{"S16 a node's process is killed, and its children are not", s16},
	} {
		number, _, _ := strings.Cut(c.name, " ")
		w.sub(c.name, func() { c.run(w, number) })
	}
}

// sub runs a subtest on the cluster, which it finds whole. After one that failed there are no more: they would only
// wait for what is broken.
func (w *world) sub(name string, run func()) {
	if w.root.Failed() {
		return
	}
	w.root.Run(name, func(t *testing.T) {
		w.T = t
		began := time.Now()
		w.whole()
		w.turns.begin()
		run()
		t.Logf("%s in %s; a turn of this process was %s late at most", name,
			time.Since(began).Round(time.Millisecond), w.turns.latestTurn().Round(time.Millisecond))
	})
	w.T = w.root
}

// assigned waits until the store has tasks of a prefix with a node as executor, and gives how many.
func (w *world) assigned(prefix string, to *member, status ...task.Status) int {
	w.T.Helper()
	n := 0
	w.Eventually(recoverLimit, fmt.Sprintf("tasks %s are %v on %s", prefix, status, to.name), func(context.Context) (bool, string) {
		n = 0
		for _, t := range w.stored(prefix) {
			for _, s := range status {
				if t.Executor == to.name && t.LifecycleStatus == s {
					n++
				}
			}
		}
		return n > 0, "none"
	})
	return n
}

func c01(w *world, prefix string) {
	victim := w.nodes()[0]
	victim.links[toKafka].Stall() // what is published to it does not arrive
	w.submit(200, prefix, quick, 20)
	n := w.assigned(prefix, victim, task.Assigning)
	victim.kill()
	again := 0
	for _, t := range w.check(recoverLimit, prefix) {
		if t.Attempt > 1 {
			again++
		}
	}
	if again < n || reruns(w.runsOf(prefix)) > 0 {
		w.T.Errorf("%d tasks were on their way to a dead node; %d were assigned again, %d ran again", n, again, reruns(w.runsOf(prefix)))
	}
}

func c03(w *world, prefix string) {
	victim := w.nodes()[0]
	victim.kill()
	w.submit(100, prefix+"-at-once", quick, 20)
	leader := w.leader()
	w.Eventually(recoverLimit, "the leader sees that a node is gone", func(ctx context.Context) (bool, string) {
		d, err := leader.api.Dispatcher(ctx)
		return err == nil && d.Nodes == nodes-1, fmt.Sprint(d.Nodes, " nodes ", err)
	})
	w.submit(100, prefix+"-later", quick, 20)
	for id, t := range w.check(recoverLimit, prefix) {
		if strings.HasPrefix(id, prefix+"-later") && (t.Attempt != 1 || t.Executor == victim.name) {
			w.T.Errorf("task %s went to %s, attempt %d", id, t.Executor, t.Attempt)
		}
	}
}

func c05(w *world, prefix string) {
	task := newTask(prefix+"-1", slow, 0)
	task.TimeoutMs, task.Attachments = (2 * time.Hour).Milliseconds(), map[string]int{"ms": 7_200_000, "again": 10}
	ctx, cancel := context.WithTimeout(w.T.Context(), recoverLimit)
	defer cancel()
	if err := w.offer(ctx, []client.NewTask{task}); err != nil {
		w.T.Fatal(err)
	}
	var first history.Run
	w.Eventually(recoverLimit, "it runs", func(context.Context) (bool, string) {
		runs := w.runsOf(prefix)[task.ID]
		if len(runs) > 0 {
			first = runs[0]
		}
		return len(runs) > 0, ""
	})
	w.hold(first.Start + 5*time.Second - boot())
	for _, n := range w.nodes() {
		if n.proc.PID() == first.PID {
			n.kill()
		}
	}
	w.check(recoverLimit, prefix)
	runs := w.runsOf(prefix)[task.ID]
	if again := runs[len(runs)-1].Start - first.Start; len(runs) != 2 || again > 8*time.Second {
		w.T.Errorf("%d runs; the last one began %s after the first, want 8 s at most", len(runs), again)
	} else {
		w.T.Logf("it ran again %s after its begin, %s after the kill", again, runs[1].Start-runs[0].End)
	}
}

func c09(w *world, prefix string) {
	victim := w.nodes()[0]
	victim.freeze()
	w.submit(60, prefix+"-1", quick, 20)
	took := w.ended(recoverLimit, prefix)
	frozen := victim.proc.PID()
	victim.thaw()
	w.online(victim)
	w.submit(60, prefix+"-2", quick, 20)
	first := 0
	for _, t := range w.check(recoverLimit, prefix) {
		if strings.HasPrefix(t.ID, prefix+"-1") && t.Attempt > 1 {
			first++
		}
	}
	if first == 0 {
		w.T.Error("nothing was sent to the frozen node: the case was not met")
	}
	for id, runs := range w.runsOf(prefix + "-1") {
		for _, r := range runs {
			if r.PID == frozen {
				w.T.Errorf("task %s: the thawed node started attempt %d", id, r.Attempt)
			}
		}
	}
	w.T.Logf("%d of 60 tasks were sent to the frozen node; all had ended %s after the submit", first, took.Round(time.Millisecond))
}

// times is how often a fault comes: a few times in CI, and as often as the case says in the long run.
func times(short, long int) int {
	if chaosDuration() > 0 {
		return long
	}
	return short
}

func c16(w *world, prefix string) {
	old, other := w.leader(), w.follower()
	before, err := w.store.Leader(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	w.submit(200, prefix+"-1", quick, 50)
	old.links[toStore].Cut()
	w.Eventually(recoverLimit, "the other one leads", func(ctx context.Context) (bool, string) {
		d, err := other.api.Dispatcher(ctx)
		return err == nil && d.IsLeader && d.Leader.Term > before.Term, fmt.Sprintf("term %d, %v", d.Leader.Term, err)
	})
	w.submit(200, prefix+"-2", quick, 50)
	w.ended(recoverLimit, prefix)
	old.links[toStore].Restore()
	w.submit(200, prefix+"-3", quick, 50)
	w.check(recoverLimit, prefix)
	if w.leader() == old {
		w.T.Error("the old leader leads again, though the other one lives")
	}
}

func c25(w *world, prefix string) {
	victim := w.nodes()[0]
	frozen := victim.proc.PID()
	w.submit(45, prefix+"-1", slow, 4000)
	n := w.assigned(prefix, victim, task.Running)
	victim.freeze()
	w.hold(15 * time.Second)
	w.ended(recoverLimit, prefix)
	thawed := boot()
	victim.thaw()
	w.online(victim)
	w.submit(60, prefix+"-2", quick, 20)
	w.check(recoverLimit, prefix)
	stopped, last, first := 0, thawed, history.Forever
	for _, l := range w.record().Lines {
		switch {
		case l.PID != frozen || l.Boot < thawed || !strings.HasPrefix(l.Task, prefix):
		case l.Event == history.Started:
			first = min(first, l.Boot)
		case strings.HasPrefix(l.Task, prefix+"-1"): // one whose time was up may come to its end by itself; its result does not count
			stopped++
			last = max(last, l.Boot)
			if l.Event == history.Stopped && l.Cause != "lease lost" {
				w.T.Errorf("task %s was stopped because: %s", l.Task, l.Cause)
			}
		}
	}
	if stopped < n || last > first {
		w.T.Errorf("%d runs were frozen, %d were stopped; the last stop %s after the thaw, the first start of something new %s after it",
			n, stopped, last-thawed, first-thawed)
	}
	w.T.Logf("%d runs were stopped within %s of the thaw", stopped, last-thawed)
}

func c26(w *world, prefix string) {
	victim := w.nodes()[0]
	w.submit(30, prefix, slow, 5000)
	n := w.assigned(prefix, victim, task.Running)
	for _, link := range victim.links {
		link.Cut()
	}
	cut := boot()
	w.check(recoverLimit, prefix)
	stopped, late := 0, time.Duration(0)
	for _, l := range w.record().Lines {
		if l.PID == victim.proc.PID() && l.Event == history.Stopped && strings.HasPrefix(l.Task, prefix) {
			stopped++
			late = max(late, l.Boot-cut)
			if l.Cause != "lease lost" {
				w.T.Errorf("task %s was stopped because: %s", l.Task, l.Cause)
			}
		}
	}
	if stopped < n || late > rules.LostAfter+rules.Instant {
		w.T.Errorf("of %d runs on a node that was cut off, %d were stopped, the last one after %s", n, stopped, late)
	}
	w.T.Logf("%d runs were stopped, the last one %s after the cut", stopped, late)
}

func c27(w *world, prefix string) {
	victim := w.nodes()[0]
	w.submit(30, prefix, slow, 8000)
	n := w.assigned(prefix, victim, task.Running)
	for _, service := range []string{toRedis, toKafka} {
		victim.links[service].Cut()
		w.hold(rules.LostAfter + rules.LostAfter/2)
		victim.links[service].Restore()
	}
	w.hold(time.Second) // until it is confirmed again
	for _, link := range victim.links {
		link.Cut()
	}
	w.hold(rules.LostAfter / 4)
	victim.restore()
	w.once(prefix)
	w.T.Logf("%d runs went on", n)
}

// once waits for the end of all tasks of a prefix, and checks that each was assigned once.
func (w *world) once(prefix string) {
	w.T.Helper()
	for id, t := range w.check(recoverLimit, prefix) {
		if t.Attempt != 1 {
			w.moved(id, &t)
		}
	}
}

// moved reports a task that ran again though every process lives and one service at most was away. Nodes that are not
// confirmed in time stop their work, as they must; where the machine had no time for anybody, this shows nothing.
func (w *world) moved(id string, t *task.Task) {
	w.T.Helper()
	report := w.T.Errorf
	if w.turns.latestTurn() > turnLimit {
		report = w.T.Logf
	}
	report("task %s was moved: it is %s in attempt %d on %s, %d failures, %d crashes: %+v; a turn of this process was %s late",
		id, t.LifecycleStatus, t.Attempt, t.Executor, t.Failures, t.Crashes, t.Attempts, w.turns.latestTurn())
}

// resumes submits tasks, and checks how long it took until they had ended. What they take anyway comes on top of the
// limit, and CI does other things meanwhile.
func (w *world) resumes(what, prefix string, limit, usual time.Duration) {
	w.T.Helper()
	took := w.usual(prefix)
	w.T.Logf("%s: tasks had ended after %s", what, took.Round(time.Millisecond))
	if chaosDuration() == 0 {
		limit += 12 * time.Second
	}
	if limit += 2 * usual; took > limit {
		w.T.Errorf("%s: tasks had ended after %s, want %s at most", what, took, limit)
	}
}

// unready waits until both controllers say that a service is missing, and nothing else.
func (w *world) unready(service string) {
	w.T.Helper()
	for _, c := range w.controllers() {
		w.Eventually(recoverLimit, c.name+" says that "+service+" is missing", func(ctx context.Context) (bool, string) {
			missing, err := c.api.Ready(ctx)
			return err == nil && len(missing) == 1 && missing[0].Name == called[service], fmt.Sprint(missing, err)
		})
	}
}

func c34(w *world, prefix string) {
	usual := w.usual(prefix + "-before")
	for i := range times(2, 20) {
		part := fmt.Sprintf("%s-%02d", prefix, i)
		w.submit(30, part, quick, 100)
		if i%2 == 0 {
			w.Kafka.Kill(w.T)
		} else {
			w.Kafka.Stop(w.T)
		}
		w.submit(30, part+"-down", quick, 10) // the API takes tasks without a broker
		w.unready(toKafka)
		w.Kafka.Start(w.T)
		w.brokerServes()
		w.resumes("the broker is back", part+"-back", 5*time.Second, usual)
		for _, c := range w.controllers() {
			w.Ready(c.api)
		}
	}
	// Every node takes part again.
	per := map[string]int{}
	w.submit(3*capacity, prefix+"-last", slow, 300)
	for id, t := range w.check(recoverLimit, prefix) {
		if strings.HasPrefix(id, prefix+"-last") {
			per[t.Executor]++
		}
	}
	if len(per) != nodes {
		w.T.Errorf("the last tasks ran on %v, want all nodes", per)
	}
}

func c43(w *world, prefix string) {
	usual := w.usual(prefix + "-before")
	for i := range 3 {
		part := fmt.Sprintf("%s-%d", prefix, i)
		lasts := time.Duration(times(3, 10)) * time.Second // longer than nodes trust themselves without any confirmation
		w.submit(30, part, slow, int(lasts/time.Millisecond))
		w.Redis.Stop(w.T)
		w.hold(lasts)
		w.Redis.Start(w.T)
		w.resumes("Redis is back", part+"-back", 3*time.Second, usual)
	}
	w.once(prefix)
}

func c44(w *world, prefix string) {
	n := times(2000, 10_000)
	w.submit(n, prefix, quick, 50)
	w.Eventually(recoverLimit, "tasks flow", func(ctx context.Context) (bool, string) {
		done, err := w.count(ctx, prefix, task.Finished)
		return done > n/20, fmt.Sprint(done, err)
	})
	w.Redis.Kill(w.T)
	left, err := w.count(w.T.Context(), prefix, task.Created)
	if err != nil || left == 0 {
		w.T.Errorf("%d tasks wait while Redis is gone, %v", left, err)
	}
	w.Redis.Start(w.T)
	if got := w.check(2*recoverLimit, prefix); len(got) != n {
		w.T.Errorf("%d tasks, want %d", len(got), n)
	}
}

func c48(w *world, prefix string) {
	pids := map[*member]int{}
	for _, c := range w.controllers() {
		pids[c] = c.proc.PID()
	}
	w.submit(500, prefix+"-0", quick, 100)
	for i := range times(5, 30) {
		for _, c := range w.controllers() {
			c.links[toStore].Drop()
		}
		w.submit(20, fmt.Sprintf("%s-1-%02d", prefix, i), quick, 10)
		w.hold(time.Second)
	}
	w.check(recoverLimit, prefix)
	for c, pid := range pids {
		if !c.proc.Running() || c.proc.PID() != pid {
			w.T.Errorf("%s has ended", c.name)
		}
	}
}

func s8(w *world, prefix string) {
	victim := w.nodes()[0]
	for i := range times(8, 50) {
		w.submit(40, fmt.Sprintf("%s-%02d", prefix, i), quick, 50)
		switch i % 4 {
		case 0: // it may not even be registered yet
			victim.kill()
		case 1:
			w.online(victim)
			victim.kill()
		default:
			w.online(victim)
			victim.terminate()
			victim.awaitEnd()
		}
		victim.start()
	}
	w.online(victim)
	w.check(recoverLimit, prefix)
}
