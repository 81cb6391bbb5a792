// Package api is the REST API of a controller, on net/http.
//
// What holds for every call:
//
//   - Bad input changes nothing, and its answer is problem+json that says which field, what it held and what is
//     allowed.
//   - A write was acknowledged by the store before it is answered. If the store does not answer, the call says 503,
//     which store that is, and that the outcome is not known. A call that needs the node registry names that one. No
//     call needs Kafka.
//   - The API changes a task only by the life cycle of package task, as a compare-and-set.
//   - Bodies, pages, waits, the requests that run at once, and the time of each are bounded.
//
// Every controller serves it, the leader or not. What is stored or registered it reads itself; what only the leader
// knows, its [Backend] asks the leader for.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

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

// Backend is what the API asks of the controller. Whatever only the leader knows is the leader's answer on every
// controller; where it cannot be had, the error is a [*NoLeaderError].
type Backend interface {
	// Status returns what the dispatcher does. Without a leader's answer it holds the settings, and says why the rest
	// is missing.
	Status(ctx context.Context) (client.Dispatcher, error)
	// SetStrategy makes all controllers place by this strategy, one of placement.Strategies, from the next round on.
	SetStrategy(ctx context.Context, strategy string) error
	// Explain says why a task is where it is. It needs the leader for tasks that wait or are on nodes.
	Explain(ctx context.Context, t *task.Task) (client.Explanation, error)
	// Pending groups all tasks that wait by reason. It needs the leader.
	Pending(ctx context.Context) (client.Pending, error)
	// Settings returns what was changed at run time.
	Settings(ctx context.Context) (store.Dispatcher, error)
	// Change changes the settings, for all controllers and over restarts, and returns what they are then. It returns
	// when nothing begins any more that is paused by then, or a short time has passed. An error of set is returned as
	// it is.
	Change(ctx context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error)
	// InUse returns how many tasks of each of these pools are on nodes. It needs the leader.
	InUse(ctx context.Context, pools []string) (map[string]int, error)
	// SetDraining drains a node, or ends that. It returns store.ErrTooMany if too many nodes are drained.
	SetDraining(ctx context.Context, node string, draining bool) error
	// Fleet returns what the leader knows of nodes beyond their heartbeats. It needs the leader.
	Fleet(ctx context.Context) (client.Fleet, error)
	// NotReady names the parts that are not ready; none = ready.
	NotReady(ctx context.Context) []client.NotReady
}

// NoLeaderError says why the leader's answer is missing.
type NoLeaderError struct {
	Leader client.Leader // who leads; no Holder = nobody
	Reason string        // why it could not be asked
}

func (e *NoLeaderError) Error() string {
	if e.Leader.Holder == "" {
		return "no controller leads"
	}
	return fmt.Sprintf("the controller that leads (%s at %s, term %d) cannot be asked: %s", e.Leader.Holder, e.Leader.Address, e.Leader.Term, e.Reason)
}

// DefaultTaskMaxBytes is TASK_MAX_BYTES where nothing is configured.
const DefaultTaskMaxBytes = 256 << 10

// Deps is what an API stands on. Tasks, Nodes and Backend are needed; the rest has defaults.
type Deps struct {
	Tasks   Tasks
	Nodes   Nodes
	Backend Backend

	// StoreName is what people call the store, for answers that say that it does not answer. Default "mongodb".
	StoreName string
	// Wake is called after tasks or what is desired of them were stored. It must not block. Default: nothing.
	Wake func()
	// Updated is called after new attachments of a task were stored, before Wake. It must not block. Default: nothing.
	Updated func(id string)
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
	// Metrics is where the API registers its metrics, and what /metrics shows. It takes one API. Default: a registry of
	// its own.
	Metrics *prometheus.Registry
}

// The operations of the API, by what they are about. They share a server.
type (
	taskAPI       struct{ *server } // tasks, and why they wait
	nodeAPI       struct{ *server } // nodes and fleet
	dispatcherAPI struct{ *server } // the dispatcher, its settings, and the readiness of the process
)

// server is the API at work.
type server struct {
	Deps

	metrics *metrics
	beats   beatClock
	waiters *semaphore.Weighted // calls that wait for a task's end
	backlog backlog
	lists   *semaphore.Weighted // pages of tasks in the making, which may be large
}

// New makes the handler of all routes.
func New(deps Deps) http.Handler {
	s := &server{Deps: withDefaults(deps), waiters: semaphore.NewWeighted(maxWaiters), lists: semaphore.NewWeighted(maxLists)}
	s.backlog = backlog{tasks: s.Tasks, limit: s.MaxBacklog, now: s.Now}
	s.metrics = newMetrics(s.Metrics, s.Tasks)
	mux := http.NewServeMux()
	api := humago.New(mux, humaConfig(s.Version))
	tasks, nodes, dispatcher := taskAPI{s}, nodeAPI{s}, dispatcherAPI{s}
	tasks.registerTasks(api)
	nodes.registerNodes(api)
	nodes.registerFleet(api)
	dispatcher.registerSystem(api)
	tasks.registerExplain(api)
	dispatcher.registerSettings(api)
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

func (s taskAPI) registerTasks(api huma.API) {
	s.registerSubmit(api)
	s.registerRead(api)
	s.registerChanges(api)
	s.registerBulk(api)
}
