// Package api is the REST API of a controller, on net/http.
//
// What holds for every call:
//
//   - Bad input changes nothing, and its answer is problem+json that says which field, what it held and what is allowed.
//   - A write was acknowledged by the store before it is answered. If the store does not answer, the call says 503, which store that
//     is, and that the outcome is not known. A call that needs the node registry names that one. No call needs Kafka.
//   - The API changes a task only by the life cycle of package task, as a compare-and-set.
//   - Bodies, pages, waits, the requests that run at once, and the time of each are bounded.
//
// Every controller serves it, the leader or not: all that it needs is in the store and the registry.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Tasks is what the API uses of the store.
type Tasks interface {
	Create(ctx context.Context, tasks []task.Task) ([]store.CreateOutcome, error)
	Apply(ctx context.Context, changes []task.Change) (int, error)
	Known(ctx context.Context, tasks []task.Task) ([]bool, error)
	Get(ctx context.Context, ids []string) ([]task.Task, error)
	List(ctx context.Context, f store.Filter) (store.ListPage, error)
	Counts(ctx context.Context) (map[task.Status]int64, error)
	Purge(ctx context.Context, id string) (bool, error)
}

// Nodes is what the API uses of the registry.
type Nodes interface {
	Snapshot(ctx context.Context) (registry.Snapshot, error)
	Node(ctx context.Context, id string) (registry.Node, bool, error)
}

// DispatcherStatus says what the dispatcher does.
type DispatcherStatus = client.Dispatcher

// NotReady is one part that the controller still misses.
type NotReady = client.NotReady

// Dispatcher is the dispatcher as the API shows and steers it.
type Dispatcher interface {
	// Status says what it does.
	Status(ctx context.Context) (DispatcherStatus, error)
	// SetStrategy makes all controllers place by this strategy, one of placement.Strategies, from the next round on.
	SetStrategy(ctx context.Context, strategy string) error
	// Explain says why a task is where it is. It gives ErrNoLeader if that is known to a leader only, and none answers.
	Explain(ctx context.Context, t *task.Task) (client.Explanation, error)
	// Pending groups all tasks that wait by reason. It gives ErrNoLeader if no leader answers.
	Pending(ctx context.Context) (client.Pending, error)
	// Settings gives what was changed at run time.
	Settings(ctx context.Context) (store.Dispatcher, error)
	// Change changes that, for all controllers and over restarts, and gives what it is then. It returns when nothing begins any more that is
	// paused by then, or a short time has passed. An error of set is given as it is.
	Change(ctx context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error)
	// InUse says how many tasks of each of these pools are on nodes. It gives ErrNoLeader if no leader answers.
	InUse(ctx context.Context, pools []string) (map[string]int, error)
	// SetDraining drains a node, or ends that. It gives store.ErrTooMany if too many nodes are drained.
	SetDraining(ctx context.Context, node string, draining bool) error
}

// ErrNoLeader says that no controller leads now, or that the one which does cannot be asked.
var ErrNoLeader = errors.New("no controller leads")

// DefaultTaskMaxBytes is TASK_MAX_BYTES where nothing is configured.
const DefaultTaskMaxBytes = 256 << 10

// Deps is what an API stands on. Tasks, Nodes and Dispatcher are needed; the rest has defaults.
type Deps struct {
	Tasks      Tasks
	Nodes      Nodes
	Dispatcher Dispatcher

	// StoreName is what people call the store, for answers that say that it does not answer. Default "mongodb".
	StoreName string
	// Wake is called after tasks or wishes were stored. It must not block. Default: nothing.
	Wake func()
	// Updated is called after new attachments of a task were stored, before Wake. It must not block. Default: nothing.
	Updated func(id string)
	// SetAside says why a node takes no new work, if it is set aside. Default: none is.
	SetAside func(node string) *client.Cordon
	// Ready names the parts that are not ready; none = ready. Default: always ready.
	Ready func(ctx context.Context) []NotReady
	// Now stamps tasks. Default time.Now.
	Now func() time.Time
	// NewID makes the id of a task that came without. Default: a UUID of version 7.
	NewID func() string
	// TaskMaxBytes is how large attachments may be, in bytes without white space. Default DefaultTaskMaxBytes.
	TaskMaxBytes int
	// MaxBacklog is how many tasks may wait before submits are refused with 429. Default 0: no limit.
	MaxBacklog int
	// Token is what a caller must show as a bearer token; empty = nothing.
	Token string
	// Version is the build's version, for the OpenAPI document.
	Version string
	// Log takes what went wrong on this side. Default slog.Default.
	Log *slog.Logger
	// Metrics is where the API registers its metrics, and what /metrics shows. It takes one API. Default: a registry of its own.
	Metrics *prometheus.Registry
}

// server is the API at work.
type server struct {
	Deps

	metrics *metrics
	beats   beatClock
	waiters limiter // calls that wait for a task's end
	backlog backlog
	lists   limiter // pages of tasks in the making, which may be large
}

// New makes the handler of all routes.
func New(deps Deps) http.Handler {
	s := &server{Deps: withDefaults(deps), waiters: newLimiter(maxWaiters), lists: newLimiter(maxLists)}
	s.backlog = backlog{tasks: s.Tasks, limit: s.MaxBacklog, now: s.Now}
	s.metrics = newMetrics(s.Metrics, s.Tasks)
	mux := http.NewServeMux()
	api := humago.New(mux, humaConfig(s.Version))
	s.registerTasks(api)
	s.registerNodes(api)
	s.registerSystem(api)
	s.registerExplain(api)
	s.registerSettings(api)
	s.mountPages(mux, api)
	return s.middleware(mux)
}

func withDefaults(d Deps) Deps {
	if d.StoreName == "" {
		d.StoreName = "mongodb"
	}
	if d.Wake == nil {
		d.Wake = func() {}
	}
	if d.Updated == nil {
		d.Updated = func(string) {}
	}
	if d.Ready == nil {
		d.Ready = func(context.Context) []NotReady { return nil }
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.NewID == nil {
		d.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if d.TaskMaxBytes == 0 {
		d.TaskMaxBytes = DefaultTaskMaxBytes
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Metrics == nil {
		d.Metrics = prometheus.NewRegistry()
	}
	return d
}

type taskOutput struct {
	Body *task.Task
}

func (s *server) now() int64 { return s.Now().UnixMilli() }

func (s *server) registerTasks(api huma.API) {
	s.registerSubmit(api)
	s.registerRead(api)
	s.registerSteer(api)
	s.registerBulk(api)
}
