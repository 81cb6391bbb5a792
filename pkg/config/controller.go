package config

import (
	"net"
	"slices"
	"strconv"
	"time"
)

// Controller is the configuration of a controller process.
type Controller struct {
	Log

	// Mode says which parts run in this process.
	Mode ControllerMode `envconfig:"SYSTEM_CONTROLLER_MODE" default:"DISPATCHER" words:"CONTROLLER,MONITOR,DISPATCHER" dev:"-"`
	// Host and Port are where the API listens; port 0 takes a free one.
	Host string `envconfig:"SYSTEM_CONTROLLER_HOST" default:"127.0.0.1" syntax:"host" dev:"-"`
	Port int    `envconfig:"SYSTEM_CONTROLLER_PORT" default:"8000" range:"0..65535" dev:"-"`
	// APIToken is what every call of the API must carry; empty lets all in.
	APIToken Secret `envconfig:"API_TOKEN" syntax:"token" dev:"-"`
	// APIInsecure allows an API beyond loopback without a token.
	APIInsecure bool `envconfig:"API_INSECURE" default:"false" dev:"-"`

	Kafka  `dev:"-"`
	Redis  `dev:"-"`
	Mongo  `dev:"-"`
	SQLite `dev:"-"`

	// Store says where the tasks are kept.
	Store StoreKind `envconfig:"STORE" default:"mongo" words:"mongo,memory,sqlite" dev:"-"`
	// TaskMaxBytes is the size of the largest attachments of a task, as JSON.
	TaskMaxBytes int `envconfig:"TASK_MAX_BYTES" default:"262144" range:"1024..4194304"`
	// TaskRetention is how long an ended task is kept.
	TaskRetention time.Duration `envconfig:"TASK_RETENTION" default:"168h" range:"1s..87600h"`

	// DispatcherInterval is how often the store is asked for tasks that nobody
	// announced, such as those that a script inserted.
	DispatcherInterval time.Duration `envconfig:"DISPATCHER_INTERVAL" default:"5s" range:"10ms..1h"`
	// DispatcherStrategy names the strategy that the dispatcher starts with. Any
	// text is taken here; which strategies there are, the controller knows.
	DispatcherStrategy string `envconfig:"DISPATCHER_STRATEGY" default:"LEAST_TASKS"`
	// DispatcherPriorityMode says how priorities share the nodes.
	DispatcherPriorityMode PriorityMode `envconfig:"DISPATCHER_PRIORITY_MODE" default:"strict" words:"strict,weighted"`
	// PriorityAging is how long a task waits for each step of priority that it
	// moves up; 0 = it stays where it is.
	PriorityAging time.Duration `envconfig:"PRIORITY_AGING" default:"1m" range:"0s..87600h"`
	// DispatcherMaxPending is how many tasks may be sent to nodes and not
	// started; 0 = no limit. From half of it on, the dispatcher slows down.
	DispatcherMaxPending int `envconfig:"DISPATCHER_MAX_PENDING" default:"1000" range:"0..1000000"`
	// MaxBacklog is how many tasks may wait before submits are refused with 429;
	// 0 = no limit.
	MaxBacklog int `envconfig:"MAX_BACKLOG" default:"0" range:"0..1000000000"`
	// AssignResendAfter is how long an assignment may go unreported before it is
	// sent again.
	AssignResendAfter time.Duration `envconfig:"ASSIGN_RESEND_AFTER" default:"2s" range:"100ms..10m"`
	// LeaderLease is how long a leader that writes nothing stays leader.
	LeaderLease time.Duration `envconfig:"LEADER_LEASE" default:"2s" range:"500ms..5m"`

	Retry

	// CancelGrace is how long after its deadline a node may still end a task
	// before the controller does.
	CancelGrace time.Duration `envconfig:"CANCEL_GRACE" default:"10s" range:"100ms..1h"`

	Liveness

	// MonitorSkaldInterval is how often the leader reads the state of all nodes.
	MonitorSkaldInterval time.Duration `envconfig:"MONITOR_SKALD_INTERVAL" follows:"NODE_HEARTBEAT_INTERVAL" range:"50ms..1m"`
	// MonitorTaskInterval is how often the leader compares what it knows with
	// the store.
	MonitorTaskInterval time.Duration `envconfig:"MONITOR_TASK_INTERVAL" default:"5s" range:"100ms..1h"`
}

// LoadController reads the configuration of a controller from the environment.
// The error is an [Error] with every problem.
func LoadController() (Controller, error) {
	var c Controller
	r := read(&c)
	if err := r.finish(c.problems()); err != nil {
		return Controller{}, err
	}
	return c, nil
}

// Validate returns an [Error] with every problem, or nil. It reads the TLS files
// that the configuration names.
func (c Controller) Validate() error { return errorOf(c.problems()) }

// ListenAddr is the address that the API listens on.
func (c Controller) ListenAddr() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

func (c Controller) problems() []Problem {
	problems := slices.Concat(
		checkFields(&c),
		c.Kafka.rules(),
		c.Redis.rules(),
		c.Liveness.rules(),
		c.fits("TASK_MAX_BYTES", c.TaskMaxBytes),
	)
	if !isLoopback(c.Host) && c.APIToken == "" && !c.APIInsecure {
		problems = append(problems, Problem{
			"API_TOKEN", "", "a token, because SYSTEM_CONTROLLER_HOST (" + c.Host +
				") lets other machines reach the API; or API_INSECURE=true to let everybody in",
		})
	}
	return problems
}
