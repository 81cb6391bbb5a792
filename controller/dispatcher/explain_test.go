package dispatcher_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// While a rate limits queues, tokens come between two rounds. A task is never explained as ready if the next round does
// not place it, and a task that waits for the rate is never explained by something else.
func TestWhatWaitsForARateIsNeverSaidToBeReadyBeforeItIs(t *testing.T) {
	t.Parallel()
	rate := store.Rate{PerSecond: 10, Burst: 5}
	for name, c := range map[string]struct {
		set  store.Dispatcher
		want dispatcher.Reason
	}{
		"all":   {store.Dispatcher{Rate: &rate}, dispatcher.RateLimited},
		"class": {store.Dispatcher{ClassRates: map[string]store.Rate{"a": rate}}, dispatcher.ClassRateLimited},
		"node":  {store.Dispatcher{NodeRates: map[string]store.Rate{"n1": rate}}, placement.NodesRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 1000, "a"))
			b.d.Use(c.set)
			ids := b.submit(t, "a", 40)
			for _, id := range b.submit(t, "a", 20, namespace("other"), named("other")) {
				ids = append(ids, "other"+id)
			}
			seen := make(map[dispatcher.Reason]int)
			for len(b.running(t)) < len(ids) {
				// Rounds come late, as they do if one takes long: at 10 a second there are 0 to 5 tokens.
				b.clock.Advance(time.Duration(37*len(seen)+len(b.running(t))*13%600) * time.Millisecond)
				ready, listed := b.saidToBeReady(t, ids, c.want, seen)
				before := len(b.running(t))
				b.round(t)
				running := make(map[string]bool)
				for _, id := range b.running(t) {
					running[id] = true
				}
				for _, id := range ready {
					if !running[id] {
						t.Fatalf("%s was said to be ready, and the next round did not place it", id)
					}
				}
				if placed := len(running) - before; listed > int64(placed) {
					t.Fatalf("%d tasks were listed as ready, and the next round placed %d", listed, placed)
				}
				b.clock.Advance(70 * time.Millisecond)
			}
			if seen[c.want] == 0 || seen[dispatcher.Ready] == 0 {
				t.Errorf("%v, want tasks that wait for the rate, and the last ones ready", seen)
			}
		})
	}
}

// saidToBeReady returns the tasks that are explained as ready, and how many are listed as such. The others must wait
// for one reason.
func (b *bundle) saidToBeReady(t *testing.T, ids []string, want dispatcher.Reason, seen map[dispatcher.Reason]int) (ready []string, listed int64) {
	t.Helper()
	for _, id := range ids {
		tk := b.get(t, id)
		if tk.LifecycleStatus != task.Created {
			continue
		}
		e := b.d.Explain(&tk)
		seen[e.Reason]++
		switch e.Reason {
		case dispatcher.Ready:
			ready = append(ready, id)
		case want, dispatcher.NotLookedAt:
			if e.Text == "" || e.Help == "" {
				t.Fatalf("%+v has no words", e)
			}
		default:
			t.Fatalf("%s is said to wait for %s, want %s", id, e.Reason, want)
		}
	}
	groups, err := b.d.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g.Reason == dispatcher.Ready {
			listed = g.Tasks
		}
	}
	return ready, listed
}

// A rate that was removed blocks nothing, even if it ended the last round.
func TestARateThatIsTakenAwayIsNoReason(t *testing.T) {
	t.Parallel()
	slow := store.Rate{PerSecond: 0.01, Burst: 1}
	for name, set := range map[string]store.Dispatcher{
		"all":   {Version: 1, Rate: &slow},
		"class": {Version: 1, ClassRates: map[string]store.Rate{"a": slow}},
		"node":  {Version: 1, NodeRates: map[string]store.Rate{"n1": slow}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 1000, "a"))
			b.d.Use(set)
			ids := b.submit(t, "a", 9)
			b.round(t)
			tk := b.get(t, ids[8])
			if e := b.d.Explain(&tk); e.Reason == dispatcher.Ready {
				t.Fatalf("%+v, want the rate", e)
			}
			b.d.Use(store.Dispatcher{Version: 2})
			if e := b.d.Explain(&tk); e.Reason != dispatcher.Ready {
				t.Errorf("%+v, want it ready", e)
			}
			if out := b.round(t); out.Placed != 8 {
				t.Errorf("%+v", out)
			}
		})
	}
}

// The explanation of a task behind those that get the current tokens says when the next token comes.
func TestATaskBehindOthersKnowsWhenTheNextTokenComes(t *testing.T) {
	t.Parallel()
	rate := store.Rate{PerSecond: 1, Burst: 3}
	for name, set := range map[string]store.Dispatcher{
		"all": {Rate: &rate}, "class": {ClassRates: map[string]store.Rate{"a": rate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 1000, "a"))
			b.d.Use(set)
			ids := b.submit(t, "a", 9)
			b.round(t)
			tk := b.get(t, ids[8])
			for _, c := range []struct{ after, next time.Duration }{
				{500 * time.Millisecond, 500 * time.Millisecond}, // there is no token
				{time.Second, 500 * time.Millisecond},            // there is one
				{10 * time.Second, 0},                            // the bucket is full
			} {
				b.clock.Advance(c.after)
				want := b.clock.Now().Add(c.next).UnixMilli()
				if c.next == 0 {
					want = 0
				}
				if e := b.d.Explain(&tk); e.Until != want || e.Reason == dispatcher.Ready {
					t.Errorf("after %v more: %s until %d, want the rate, until %d", c.after, e.Reason, e.Until, want)
				}
			}
		})
	}
}
