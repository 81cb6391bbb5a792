package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/history"
)

// s16 kills the process of a node alone, while children of it do the work. Those that are to die with it do, so that
// the node which is started again proves the death. Those that outlive it hold its lock: nothing is proven until they
// are gone, too.
func s16(w *world, prefix string) {
	victim := w.nodes()[0]
	victim.terminate()
	victim.awaitEnd()
	victim.env["SKALD_STATE_DIR"] = w.T.TempDir()
	w.T.Cleanup(func() {
		victim.kill()
		delete(victim.env, "SKALD_STATE_DIR")
	})
	victim.start()
	w.online(victim)

	w.submitAgain(4*nodes, prefix+"-exec", "exec", 120_000, 10)
	children := w.childrenOf(victim, prefix+"-exec")
	victim.kill()
	killed := time.Now()
	victim.start()
	w.awaitGone(children)
	w.T.Logf("%d children of a node that was killed were gone after %s", len(children), time.Since(killed).Round(time.Millisecond))
	w.again(victim, prefix+"-exec", children)

	w.online(victim)
	w.submitAgain(4*nodes, prefix+"-orphan", "orphan", 120_000, 10)
	children = w.childrenOf(victim, prefix+"-orphan")
	victim.kill()
	victim.start()
	w.hold(rules.LostAfter / 2) // a proof would have been used at once
	for _, pid := range slices.Collect(maps.Values(children)) {
		if !alive(pid) {
			w.T.Errorf("child %d is gone: the case was not met", pid)
		}
		for id, runs := range w.runsOf(prefix + "-orphan") {
			if children[id] == pid && len(runs) > 1 {
				w.T.Errorf("task %s was started again while a child worked for it", id)
			}
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	w.awaitGone(children)
	w.again(victim, prefix+"-orphan", children)
	for _, m := range w.nodes() { // what runs elsewhere would run on for long
		w.cancelHeld(prefix, m)
	}
	w.check(recoverLimit, prefix)
}

// submitAgain has tasks acknowledged whose later attempts take another time than the first.
func (w *world) submitAgain(n int, prefix, class string, ms, again int) {
	w.T.Helper()
	list := batch(n, prefix, class, ms)
	for i := range list {
		list[i].Attachments = map[string]int{"ms": ms, "again": again}
	}
	ctx, cancel := context.WithTimeout(w.T.Context(), recoverLimit)
	defer cancel()
	if err := w.offer(ctx, list); err != nil {
		w.T.Fatal(err)
	}
}

// childrenOf waits until all tasks of a prefix run, and gives the process ids of those on a node, by task.
func (w *world) childrenOf(n *member, prefix string) map[string]int {
	w.T.Helper()
	pids := map[string]int{}
	w.Eventually(recoverLimit, "children of "+n.name+" run", func(context.Context) (bool, string) {
		clear(pids)
		lines, err := history.Read(w.runs)
		held := 0
		for id, t := range w.stored(prefix) {
			if t.LifecycleStatus != task.Running {
				return false, id + " is " + string(t.LifecycleStatus)
			}
			if t.Executor != n.name {
				continue
			}
			held++
			for _, l := range lines {
				if l.Task == id && l.Attempt == t.Attempt && l.Event == history.Started {
					pids[id] = l.PID
				}
			}
		}
		return held > 0 && len(pids) == held, fmt.Sprintf("%d of %d; %v", len(pids), held, err)
	})
	return pids
}

// awaitGone waits for the end of processes that are not children of this one, and notes it.
func (w *world) awaitGone(pids map[string]int) {
	w.T.Helper()
	for _, pid := range pids {
		w.Eventually(recoverLimit, fmt.Sprintf("child %d is gone", pid), func(context.Context) (bool, string) { return !alive(pid), "it runs" })
		w.mu.Lock()
		w.gone[pid] = boot()
		w.mu.Unlock()
	}
}

// alive says whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')'):], []byte(" "))
	return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

// again waits until tasks whose processes died have run again.
func (w *world) again(n *member, prefix string, children map[string]int) {
	w.T.Helper()
	began := time.Now()
	w.Eventually(recoverLimit, "what the children did runs again", func(context.Context) (bool, string) {
		for id, t := range w.stored(prefix) {
			if _, died := children[id]; died && (t.Attempt < 2 || !t.LifecycleStatus.Terminal()) {
				return false, fmt.Sprintf("%s is %s of attempt %d", id, t.LifecycleStatus, t.Attempt)
			}
		}
		return true, ""
	})
	w.T.Logf("the tasks of %d children of %s had run again after %s", len(children), n.name, time.Since(began).Round(time.Millisecond))
}

// cancelHeld cancels the tasks of a prefix that a node holds.
func (w *world) cancelHeld(prefix string, n *member) {
	w.T.Helper()
	for id, t := range w.stored(prefix) {
		if t.Executor == n.name && !t.LifecycleStatus.Terminal() && strings.HasPrefix(id, prefix) {
			w.cancel(w.T.Context(), id)
		}
	}
}
