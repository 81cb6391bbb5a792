package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// pollPause is the pause between two looks at how far the server is: seldom enough not to be measured itself.
	pollPause = 200 * time.Millisecond
	// countPause is how long the nodes' counters stand still before the tasks themselves are asked for.
	countPause = 1500 * time.Millisecond
	// settleTimeout is how long the nodes may take for two heartbeats without work.
	settleTimeout = 15 * time.Second
	// maxInFlight is how many single tasks are under way at once.
	maxInFlight = 64
	// maxPage is how many tasks are read at once.
	maxPage = 1000
)

// bench is one run of the benchmark.
type bench struct {
	api         *client.Client
	o           Options
	prefix      string // of the ids
	attachments json.RawMessage
	runs        []run
	before      func(submitted int) error // called before each batch; nil = nothing
}

func (b *bench) progress(ended int) {
	if b.o.Progress != nil {
		b.o.Progress(ended)
	}
}

func (b *bench) newTask(i int) client.NewTask {
	t := client.NewTask{ID: b.prefix + strconv.Itoa(i), ClassName: b.o.Classes[i%len(b.o.Classes)], MaxAttempts: new(1)}
	if b.attachments != nil {
		t.Attachments = b.attachments
	}
	return t
}

// pace says when tasks are due.
type pace struct {
	began time.Time
	rate  float64
}

// wait returns when task i is due, or ctx ends.
func (p pace) wait(ctx context.Context, i int) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(p.began.Add(time.Duration(float64(i) / p.rate * float64(time.Second)))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// driveBatches submits all tasks and waits until they have ended.
func (b *bench) driveBatches(ctx context.Context, before nodeCounts) error {
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(connections)
	p := pace{began: time.Now(), rate: b.o.Rate}
	size := b.o.Batch
	if p.rate > 0 {
		size = max(min(size, int(p.rate/20)), 1) // a rate is not a burst each second
	}
	for from := 0; from < b.o.Tasks && groupCtx.Err() == nil; from += size {
		to := min(from+size, b.o.Tasks)
		if p.wait(groupCtx, from) != nil {
			break
		}
		if b.before != nil {
			if err := b.before(from); err != nil {
				return errors.Join(err, g.Wait())
			}
		}
		g.Go(func() error { return b.submit(groupCtx, from, to) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.awaitEnds(ctx, before)
}

func (b *bench) submit(ctx context.Context, from, to int) error {
	list := make([]client.NewTask, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, b.newTask(i))
	}
	now := time.Now().UnixMicro()
	for i := from; i < to; i++ {
		b.runs[i].submitted = now
	}
	items, err := b.api.SubmitBatch(ctx, list)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	for i := range items {
		if items[i].Status != http.StatusCreated {
			return fmt.Errorf("submit: task %s was refused with status %d: %s", items[i].ID, items[i].Status, items[i].Error)
		}
	}
	return nil
}

// awaitEnds returns when no task of the run is open, or nothing has moved for the timeout. It goes by the nodes'
// counters, which cost the server next to nothing, and asks for the tasks only when those have arrived or stand still.
func (b *bench) awaitEnds(ctx context.Context, before nodeCounts) error {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	ended, open := -1, int64(-1)
	moved, asked := time.Now(), time.Now()
	for {
		now, err := b.readNodes(ctx)
		if err != nil {
			return err
		}
		if n := now.since(before); n != ended {
			ended, moved = n, time.Now()
		}
		b.progress(max(ended, 0))
		if ended >= b.o.Tasks || time.Since(max2(moved, asked)) > countPause {
			n, err := b.countOpen(ctx)
			if err != nil || n == 0 {
				return err
			}
			if asked = time.Now(); n != open {
				open, moved = n, asked
			}
			if time.Since(moved) > b.o.Timeout {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func max2(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// countOpen returns how many tasks of the run have not ended.
func (b *bench) countOpen(ctx context.Context) (int64, error) {
	var open []task.Status
	for _, s := range task.All() {
		if !s.Terminal() {
			open = append(open, s)
		}
	}
	page, err := b.api.List(ctx, client.Query{IDPrefix: b.prefix, Status: open, PageSize: 1})
	if err != nil {
		return 0, fmt.Errorf("count the open tasks: %w", err)
	}
	if page.Total == nil {
		return int64(len(page.Items)), nil
	}
	return *page.Total, nil
}

// driveSingles submits one task after the other and waits for the end of each.
func (b *bench) driveSingles(ctx context.Context) error {
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(maxInFlight)
	p := pace{began: time.Now(), rate: b.o.Rate}
	var done sync.Mutex
	n := 0
	for i := 0; i < b.o.Tasks && p.wait(groupCtx, i) == nil; i++ {
		g.Go(func() error {
			if err := b.single(groupCtx, i); err != nil {
				return err
			}
			done.Lock()
			defer done.Unlock()
			n++
			b.progress(n)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (b *bench) single(ctx context.Context, i int) error {
	in := b.newTask(i)
	b.runs[i].submitted = time.Now().UnixMicro()
	if _, err := b.api.Submit(ctx, in); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	_, err := b.api.Wait(wait, in.ID)
	if err == nil {
		b.runs[i].finished = time.Now().UnixMicro()
		return nil
	}
	if wait.Err() != nil && ctx.Err() == nil {
		return nil // lost, as the reading of all tasks will say
	}
	return fmt.Errorf("wait for task %s: %w", in.ID, err)
}

// readRuns reads what became of the tasks, once, at the end.
func (b *bench) readRuns(ctx context.Context) error {
	q := client.Query{IDPrefix: b.prefix, PageSize: maxPage}
	for {
		page, err := b.api.List(ctx, q)
		if err != nil {
			return fmt.Errorf("read the tasks: %w", err)
		}
		for j := range page.Items {
			t := &page.Items[j]
			i, err := strconv.Atoi(strings.TrimPrefix(t.ID, b.prefix))
			if err != nil || i < 0 || i >= len(b.runs) {
				continue
			}
			r := &b.runs[i]
			r.status, r.attempt, r.started = t.LifecycleStatus, t.Attempt, startedOf(t)
			if r.finished == 0 {
				r.finished = t.FinishDateTime * 1000
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}
