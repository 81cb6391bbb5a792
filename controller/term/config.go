package term

import (
	"context"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Config is the configuration of the terms of one controller.
type Config struct {
	Controller string // run id of the controller process
	Dispatch   bool   // whether terms dispatch; if not, they only monitor

	Heartbeat        time.Duration // NODE_HEARTBEAT_INTERVAL
	LostAfter        time.Duration // NODE_LOST_AFTER
	Drift            time.Duration // how much longer than LostAfter a node may be silent, since clocks drift apart
	ResendAfter      time.Duration // ASSIGN_RESEND_AFTER
	CompareInterval  time.Duration // MONITOR_TASK_INTERVAL
	MonitorInterval  time.Duration // MONITOR_SKALD_INTERVAL
	DispatchInterval time.Duration // DISPATCHER_INTERVAL
	CancelGrace      time.Duration // CANCEL_GRACE
	Retention        time.Duration // TASK_RETENTION

	Strategy     placement.Strategy // used until somebody sets another one
	Order        fairqueue.Config
	MaxPending   int // DISPATCHER_MAX_PENDING
	TaskMaxBytes int
	Policy       task.Policy
}

// Store is the part of the store that a term uses.
type Store interface {
	dispatcher.Store
	monitor.Store
	ingest.Store
	Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error)
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	Dispatcher(ctx context.Context) (store.Dispatcher, error)
}

// Transport sends to nodes.
type Transport interface {
	dispatcher.Transport
	monitor.Transport
	ingest.Transport
}

// Bus is the part of the bus that a term uses besides its transport.
type Bus interface {
	Partitions(ctx context.Context, topic string) (int, error)
	Offsets(ctx context.Context, topic string, partitions []int) (map[int]kafka.Range, error)
}

// Deps are the dependencies of terms.
type Deps struct {
	Store      Store
	Registry   monitor.Registry
	Transport  Transport
	Bus        Bus
	Open       func(topic string, partition int, from kafka.Position) ingest.Reader // returns a reader of one partition
	Quarantine ingest.Quarantine
	Clock      clock.Clock
	Runner     loop.Runner
	Log        *slog.Logger
	Dispatched *dispatcher.Metrics
	Ingested   *ingest.Metrics
	Seed       func() uint64  // for strategies that choose at random
	Jitter     func() float64 // in [0, 1); spreads the backoffs of tasks

	// Beginning, if set, may change the steps with which a term begins. Progress, if set, may change how far ingest
	// appears to be. The simulation removes guards with them.
	Beginning func(t *Term, steps []Step) []Step
	Progress  func(p monitor.Progress) monitor.Progress
}

// Lease is the leadership that a term works under.
type Lease interface {
	Term() int64
	Valid() bool
	Remaining() time.Duration
}
