package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/history"
	"github.com/skalds-go/skalds/test/proxy"
)

// What a run is told by the environment.
const (
	durationEnv = "CHAOS_DURATION" // how long the random faults go on; set = also the cases come as often as they say
	seedEnv     = "CHAOS_SEED"     // which faults; not set = by the time

	shortDuration = 25 * time.Second
)

// chaosDuration is how long the random faults go on; 0 = it is not set.
func chaosDuration() time.Duration {
	d, err := time.ParseDuration(os.Getenv(durationEnv))
	if err != nil {
		return 0
	}
	return d
}

func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedEnv)
	if text == "" {
		return uint64(time.Now().UnixMilli())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: must be a number, 0 or more", seedEnv, text)
	}
	return seed
}

// TestChaosRandom breaks things at random under load. The seed that it logs gives the same faults at the same times.
func TestChaosRandom(t *testing.T) {
	w := newWorld(t)
	duration := chaosDuration()
	if duration == 0 {
		duration = shortDuration
	}
	seed := chaosSeed(t)
	faults := plan(seed, duration)
	t.Logf("%s=%d %s=%s: %d faults", seedEnv, seed, durationEnv, duration, len(faults))

	// What the controllers need under load, without a fault.
	w.submit(500, "base", quick, 10)
	w.check(recoverLimit, "base")
	base := w.needs()

	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	wishes := make(chan string, 20)
	working.Go(func() { w.load(ctx, "load", rand.New(rand.NewPCG(seed, 1)), wishes) })
	working.Go(func() { w.people(ctx, rand.New(rand.NewPCG(seed, 2)), wishes) })
	witness := w.watch(ctx, &working, "load")
	w.breakAll(faults)
	w.whole()
	back := time.Now()
	after := batch(50, "after", quick, 1)
	for i := range after {
		after[i].Priority = 10 // before all that has been left to wait
	}
	if err := w.offer(ctx, after); err != nil {
		t.Error(err)
	}
	w.ended(recoverLimit, "after")
	took := time.Since(back)
	cancel()
	working.Wait()

	w.resumeAll("load")
	stored := w.check(2*recoverLimit, "load")
	for _, tk := range stored {
		if wrong := witness.See(&tk); wrong != "" {
			t.Error(wrong)
		}
	}
	w.back(base)
	for _, link := range []string{toKafka, toRedis} {
		t.Logf("node-1 made %d connections to %s", w.nodes()[0].links[link].Accepted(), link)
	}
	t.Logf("%d tasks, %d ran again; tasks of after the faults had ended in %s", len(stored), reruns(w.runsOf("load")), took.Round(time.Millisecond))
}

// watch looks at ended tasks from time to time, so that an end that changes is seen.
func (w *world) watch(ctx context.Context, working *sync.WaitGroup, prefix string) *history.Witness {
	witness := &history.Witness{}
	t := w.T
	working.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			// The newest tasks are those whose end is new.
			page, err := w.store.List(ctx, store.Filter{IDPrefix: prefix, Status: []task.Status{task.Finished, task.Cancelled, task.Failed}, Limit: store.MaxBatch})
			for i := range page.Tasks {
				if wrong := witness.See(&page.Tasks[i]); err == nil && wrong != "" {
					t.Error(wrong)
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return witness
}

// breakAll carries out a plan.
func (w *world) breakAll(faults []fault) {
	w.T.Helper()
	began := time.Now()
	for _, s := range steps(faults) {
		w.hold(s.at - time.Since(began))
		if s.end {
			w.mend(s.fault)
			continue
		}
		w.T.Logf("%7.3f %s", time.Since(began).Seconds(), s.fault)
		w.breakOne(s.fault)
	}
}

// of gives the links that a fault is about.
func (w *world) of(f *fault) []*proxy.Proxy {
	who, service, _ := strings.Cut(f.target, "/")
	var links []*proxy.Proxy
	for _, m := range w.members {
		if p, has := m.links[service]; has && (who == "*" || who == m.name) {
			links = append(links, p)
		}
	}
	return links
}

func (w *world) breakOne(f *fault) {
	w.T.Helper()
	switch f.target {
	case toKafka:
		w.restarts.Wait()
		switch f.what {
		case kill:
			w.Kafka.Kill(w.T)
		case stop:
			w.Kafka.Stop(w.T)
		default:
			w.deleteTopic(f.topic, f.again)
		}
		return
	case toRedis:
		if f.what == kill {
			w.Redis.Kill(w.T)
		} else {
			w.Redis.Stop(w.T)
		}
		return
	}
	switch f.what {
	case kill:
		w.member(f.target).kill()
	case freeze:
		w.member(f.target).freeze()
	case terminate:
		w.member(f.target).terminate()
	case cut:
		for _, l := range w.of(f) {
			l.Cut()
		}
	case stall:
		for _, l := range w.of(f) {
			l.Stall()
		}
	default:
		for _, l := range w.of(f) {
			l.Delay(f.delay)
		}
	}
}

func (w *world) mend(f *fault) {
	w.T.Helper()
	switch f.target {
	case toKafka:
		w.restarts.Go(func() { w.Kafka.Start(w.T) }) // the other faults go on meanwhile
		return
	case toRedis:
		w.Redis.Start(w.T)
		return
	}
	switch f.what {
	case kill:
		w.member(f.target).start()
	case freeze:
		w.member(f.target).thaw()
	case terminate:
		m := w.member(f.target)
		m.awaitEnd()
		m.start()
	default:
		for _, l := range w.of(f) {
			l.Restore()
		}
	}
}

// needs is what a controller takes of its machine.
type needs struct{ goroutines, bytes float64 }

// needs gives the larger numbers of both controllers.
func (w *world) needs() needs {
	w.T.Helper()
	var most needs
	for _, c := range w.controllers() {
		got, err := metrics(w.T.Context(), "http://127.0.0.1:"+c.env["SYSTEM_CONTROLLER_PORT"])
		if err != nil {
			w.T.Fatal(err)
		}
		most.goroutines, most.bytes = max(most.goroutines, got.goroutines), max(most.bytes, got.bytes)
	}
	return most
}

// What a controller may need more after the faults than before: connections that it holds for a while, and a heap that
// has grown.
const (
	moreGoroutines = 60
	moreBytes      = 96 << 20
)

// back waits until the controllers need no more than before.
func (w *world) back(base needs) {
	w.T.Helper()
	var now needs
	w.Eventually(recoverLimit, "goroutines and memory of the controllers are back", func(context.Context) (bool, string) {
		now = w.needs()
		return now.goroutines <= base.goroutines+moreGoroutines && now.bytes <= base.bytes+moreBytes, fmt.Sprintf("%+v, before %+v", now, base)
	})
	w.T.Logf("controllers: %.0f goroutines and %.0f MiB, before %.0f and %.0f",
		now.goroutines, now.bytes/(1<<20), base.goroutines, base.bytes/(1<<20))
}

// metrics reads what a controller says of its process.
func metrics(ctx context.Context, server string) (needs, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/metrics", http.NoBody)
	if err != nil {
		return needs{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return needs{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var n needs
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), " ")
		switch name {
		case "go_goroutines":
			n.goroutines, err = strconv.ParseFloat(value, 64)
		case "process_resident_memory_bytes":
			n.bytes, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return needs{}, fmt.Errorf("%s of %s: %w", name, server, err)
		}
	}
	if n.goroutines == 0 || n.bytes == 0 {
		return needs{}, fmt.Errorf("%s does not tell its goroutines and its memory", server)
	}
	return n, nil
}
