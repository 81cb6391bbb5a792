// Package ingest writes what nodes report to the store. It runs on the leader only.
//
// Invariants:
//
//   - A report is acknowledged to its node only when a majority of the store has it, or when the store has shown that
//     the report is not of the task's present claim, so that it can never change anything.
//   - A position is stored only after everything before it is in the store. Reading a record twice does no harm.
//   - A record that does not decode stops nothing. It goes to task.quarantine, with its place and the reason.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that ingest uses.
type Store interface {
	Apply(ctx context.Context, changes []task.Change) (int, error)
	Get(ctx context.Context, ids []string) ([]task.Task, error)
	Positions(ctx context.Context, topic string) (map[int]store.Position, error)
	SavePositions(ctx context.Context, topic string, positions map[int]store.Position) error
}

// Transport sends acknowledgements and confirmed heartbeats to nodes.
type Transport interface {
	Acknowledge(ctx context.Context, term int64, list []transport.Acknowledgement) error
	Confirm(ctx context.Context, term int64, list []transport.Confirmation) error
}

// Quarantine stores records that did not decode.
type Quarantine interface {
	Put(ctx context.Context, r *kafka.Record, topic string, reason error)
}

// Hooks are the functions that ingest calls when it has seen something. None of them may block.
type Hooks struct {
	Capacity   func() // a claim has begun or ended, so there may be a free slot
	Stored     func() // a task waits again
	Membership func() // a node has joined or left
	Submitted  func() // another controller has stored tasks or desired states
	Due        func() // a task must not run before some time

	Updated func(ids []string) // another controller has stored new attachments of these tasks; a call of Submitted follows
}

// Retry decides what follows a failure.
type Retry struct {
	Policy task.Policy
	Jitter func() float64 // in [0, 1); spreads the waits
}

// Ingest writes the reports of one leadership. It is not safe for concurrent use.
type Ingest struct {
	retry      Retry
	store      Store
	fleet      *fleet.Fleet
	quarantine Quarantine
	clock      clock.Clock
	hooks      Hooks
	metrics    *Metrics
	log        *slog.Logger

	acknowledged map[fleet.Key][]string // claims whose acknowledgement has not been sent yet, by node
	unsent       int                    // how many claims acknowledged has
}

// Metrics counts what a controller process ingests, over all its leaderships.
type Metrics struct {
	reports *prometheus.CounterVec
	bad     prometheus.Counter
}

// NewMetrics returns the metrics, registered with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skalds_reports_total",
			Help: "Reports of nodes that changed a task (applied), or were repeated or not of its present claim (stale).",
		}, []string{"outcome"}),
		bad: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "skalds_quarantined_events_total",
			Help: "Records of task.status that did not decode.",
		}),
	}
	r.MustRegister(m.reports, m.bad)
	return m
}

// New returns an ingest.
func New(retry Retry, s Store, f *fleet.Fleet, q Quarantine, c clock.Clock, h Hooks, m *Metrics, log *slog.Logger) *Ingest {
	return &Ingest{retry: retry, store: s, fleet: f, quarantine: q, clock: c, hooks: h, metrics: m, log: log,
		acknowledged: make(map[fleet.Key][]string)}
}

// Round takes in records of one or several partitions. Those of one partition must be in order. After an error it must
// be called again with the same records.
func (i *Ingest) Round(ctx context.Context, records []kafka.Record) error {
	var reports []task.Report
	var left []fleet.Key
	origin := make(map[string]fleet.Key)
	joined, submitted := false, false
	undecodable := make(map[int]error) // by index in records
	for n := range records {
		s, err := events.DecodeStatus(records[n].Value)
		if err != nil {
			undecodable[n] = err
			continue
		}
		k := fleet.Key{Node: s.Node, Incarnation: s.Incarnation}
		for r := range s.Reports {
			origin[s.Reports[r].ClaimID] = k
			s.Reports[r].Node, s.Reports[r].Heartbeat = k.Node, s.Counter
		}
		reports = append(reports, s.Reports...)
		switch s.Notice {
		case events.NoticeJoined:
			joined = true
		case events.NoticeLeft:
			left = append(left, k)
		case events.NoticeSubmitted:
			submitted = true
			if len(s.Updated) > 0 {
				i.hooks.Updated(s.Updated)
			}
		}
	}
	reports = task.Fold(reports)
	for n := range reports {
		failUnstorable(&reports[n])
	}
	reports, err := i.apply(ctx, reports)
	if err != nil {
		return err
	}
	capacity, stored := false, false
	for n := range reports {
		r := &reports[n]
		k := origin[r.ClaimID]
		capacity = i.fleet.Reported(k, r) || capacity
		stored = stored || r.Kind == task.ReportRejected || r.Kind == task.ReportReleased
		if r.Kind.Final() {
			i.acknowledge(k, r.ClaimID)
		}
	}
	for _, k := range left {
		i.fleet.Left(k)
	}
	callIf(capacity, i.hooks.Capacity)
	callIf(stored, i.hooks.Stored)
	callIf(joined || len(left) > 0, i.hooks.Membership)
	callIf(submitted, i.hooks.Submitted)
	for _, n := range slices.Sorted(maps.Keys(undecodable)) { // last, since a round is repeated while the store is down
		i.metrics.bad.Inc()
		i.quarantine.Put(ctx, &records[n], events.TopicStatus, undecodable[n])
	}
	return nil
}

// failUnstorable turns a report whose result no store can hold into a failure that says so. One such report must not
// keep the others from being written.
func failUnstorable(r *task.Report) {
	if err := store.CheckJSON(r.Result); err != nil {
		r.Kind, r.Result, r.Error = task.ReportFailed, nil, fmt.Sprintf("the result cannot be stored: %v", err)
	}
}

func callIf(yes bool, hook func()) {
	if yes {
		hook()
	}
}

// apply writes reports, each as one compare-and-set. It returns those that may be acknowledged now.
func (i *Ingest) apply(ctx context.Context, reports []task.Report) ([]task.Report, error) {
	now := i.clock.Now().UnixMilli()
	done := reports[:0]
	applied := 0
	for rest := reports; len(rest) > 0; {
		page := rest[:pageLen(rest)]
		rest = rest[len(page):]
		changes, later, err := i.changes(ctx, page, now)
		if err != nil {
			return nil, err
		}
		n, err := i.store.Apply(ctx, changes)
		callIf(later, i.hooks.Due)
		switch {
		case err == nil:
			done = append(done, page...)
		case ctx.Err() != nil || errors.Is(err, store.ErrUnavailable):
			return nil, fmt.Errorf("write %d reports: %w", len(page), err)
		default: // the store refuses some of them for good
			single, k, err := i.applySingly(ctx, page, now)
			if err != nil {
				return nil, err
			}
			done, n = append(done, single...), n+k
		}
		applied += n
	}
	i.metrics.reports.WithLabelValues("applied").Add(float64(applied))
	i.metrics.reports.WithLabelValues("stale").Add(float64(max(0, len(done)-applied)))
	return done, nil
}

// changes returns the compare-and-sets that write the reports. For failures it reads the tasks, since what follows
// depends on what happened before. Later reports whether a task has to wait before it runs again.
func (i *Ingest) changes(ctx context.Context, page []task.Report, now int64) (list []task.Change, later bool, err error) {
	var failed []string
	for n := range page {
		if page[n].Kind == task.ReportFailed {
			failed = append(failed, page[n].ID)
		}
	}
	var tasks map[string]*task.Task
	if len(failed) > 0 {
		stored, err := i.store.Get(ctx, failed)
		if err != nil {
			return nil, false, fmt.Errorf("read %d tasks that failed: %w", len(failed), err)
		}
		tasks = make(map[string]*task.Task, len(stored))
		for n := range stored {
			tasks[stored[n].ID] = &stored[n]
		}
	}
	list = make([]task.Change, 0, 2*len(page))
	for n := range page {
		r := &page[n]
		if r.Kind != task.ReportFailed {
			list = append(list, r.Changes(now)...)
			continue
		}
		if t, ok := tasks[r.ID]; ok {
			made := task.Fail(t, r, i.retry.Policy, i.retry.Jitter(), now)
			later = later || len(made) > 0 && made[0].NotBefore != 0
			list = append(list, made...)
		}
	}
	return list, later, nil
}

// pageBytes bounds the bytes of results in one call of the store, so that it is done in time. A call carries at least
// one report.
const pageBytes = 4 << 20

// pageLen returns how many of the reports one call carries.
func pageLen(reports []task.Report) int {
	bytes, changes := 0, 0
	for n := range reports {
		bytes += len(reports[n].Result)
		changes += reports[n].Kind.MaxChanges()
		if n > 0 && (bytes > pageBytes || changes > store.MaxBatch) {
			return n
		}
	}
	return len(reports)
}

// applySingly finds out which reports the store refuses. It writes a failure that says so in their place. A report
// whose failure is refused, too, is not acknowledged: its node reports it again, and the others do not wait for it.
func (i *Ingest) applySingly(ctx context.Context, page []task.Report, now int64) (done []task.Report, applied int, err error) {
	for _, r := range page {
		n, err := i.store.Apply(ctx, r.Changes(now))
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			i.log.Error("the store refuses a report", "task", r.ID, "kind", r.Kind, "error", err)
			r.Kind, r.Result, r.Progress = task.ReportFailed, nil, nil
			r.Error = events.Clip("the store refused the report: "+err.Error(), maxRefusal)
			if n, err = i.store.Apply(ctx, r.Changes(now)); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
				continue
			}
		}
		if err != nil {
			return nil, 0, fmt.Errorf("write a report of task %s: %w", r.ID, err)
		}
		done, applied = append(done, r), applied+n
	}
	return done, applied, nil
}

// maxRefusal bounds how much of the store's reason a task keeps, in bytes.
const maxRefusal = 1 << 10

// maxUnsent bounds the acknowledgements that wait to be sent. Those beyond it are dropped: the nodes report again.
const maxUnsent = 100_000

func (i *Ingest) acknowledge(k fleet.Key, claim string) {
	if i.unsent < maxUnsent {
		i.acknowledged[k] = append(i.acknowledged[k], claim)
		i.unsent++
	}
}

// acknowledgeBatch bounds the claims that one event acknowledges.
const acknowledgeBatch = 1000

// DrainAcknowledged returns the acknowledgements that have not been sent, and forgets them. It leaves out nodes that
// are gone: they are dead, or will report again.
func (i *Ingest) DrainAcknowledged() []transport.Acknowledgement {
	var list []transport.Acknowledgement
	for k, claims := range i.acknowledged {
		to, ok := i.fleet.Target(k)
		for ok && len(claims) > 0 {
			n := min(len(claims), acknowledgeBatch)
			list = append(list, transport.Acknowledgement{To: to, Claims: claims[:n]})
			claims = claims[n:]
		}
	}
	clear(i.acknowledged)
	i.unsent = 0
	return list
}
