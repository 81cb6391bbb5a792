package client

import (
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// NewTask is a task to submit. Only ClassName is needed.
type NewTask struct {
	ClassName        string      `json:"className" minLength:"1" maxLength:"256" doc:"Class of work. At most 256 bytes, no control characters."`
	ID               string      `json:"id,omitempty" maxLength:"256" doc:"At most 256 bytes, no control characters, no slash, not '.' or '..'. Default: a UUID."`
	IdempotencyKey   string      `json:"idempotencyKey,omitempty" maxLength:"256" doc:"A second submit with the same key gets the first task. At most 256 bytes."`
	Attachments      any         `json:"attachments,omitempty" doc:"Any JSON value of up to TASK_MAX_BYTES without white space, nested at most 90 deep."`
	Priority         int         `json:"priority,omitempty" minimum:"0" maximum:"10" doc:"0..10; 10 runs first. Default 0."`
	Name             string      `json:"name,omitempty" maxLength:"1024" doc:"A name for people."`
	Description      string      `json:"description,omitempty" maxLength:"16384" doc:"A text for people."`
	Source           string      `json:"source,omitempty" maxLength:"1024" doc:"Where the task comes from."`
	Mode             task.Mode   `json:"mode,omitempty" enum:"Passive,Active" doc:"Passive (default) is dispatched; Active is an edge node's own."`
	IsPersistent     *bool       `json:"isPersistent,omitempty" doc:"Kept as it is for clients of the Python Skalds; every task is stored. Default true."`
	DeadlineDateTime int64       `json:"deadlineDateTime,omitempty" minimum:"0" doc:"Epoch milliseconds at which the task is failed if it has not ended; 0 = none."`
	NotBefore        int64       `json:"notBefore,omitempty" minimum:"0" doc:"Epoch milliseconds before which the task does not run; 0 = at once."`
	TimeoutMs        int64       `json:"timeoutMs,omitempty" minimum:"0" doc:"How long one run may take, in milliseconds; 0 = any time. A run that takes longer is a failure."`
	MaxAttempts      *int        `json:"maxAttempts,omitempty" minimum:"0" maximum:"1000000" doc:"How many failures end the task: 1 the first, 0 none. Default MAX_ATTEMPTS (3)."`
	MaxCrashes       *int        `json:"maxCrashes,omitempty" minimum:"0" maximum:"1000000" doc:"How often the process of its node may die while it runs until that ends the task; 0 any number. Default MAX_CRASHES (3)."`
	Backoff          *NewBackoff `json:"backoff,omitempty" doc:"The waits between attempts. Default RETRY_BACKOFF_BASE, _FACTOR and _MAX."`
	Namespace        string      `json:"namespace,omitempty" maxLength:"256" doc:"Namespaces of one priority get the nodes in turn. Default: the one of tasks without a namespace."`
	Labels           any         `json:"labels,omitempty" doc:"Which nodes it may run on: a selector in Kubernetes' syntax (\"zone=cn-north,gpu in (a100,h100),!spot\"), or plain labels ({\"zone\":\"cn-north\"})."`
	Selector         string      `json:"selector,omitempty" maxLength:"4096" doc:"A selector beside plain labels: all of both must match."`
	Strategy         string      `json:"strategy,omitempty" maxLength:"256" doc:"How its node is picked. Default: the dispatcher's strategy."`
	StickyKey        string      `json:"stickyKey,omitempty" maxLength:"256" doc:"With the strategy STICKY, tasks of the same key go to the same node."`
	AntiAffinityKey  string      `json:"antiAffinityKey,omitempty" maxLength:"256" doc:"It runs on no node that holds a task of the same key."`
	Slots            int         `json:"slots,omitempty" minimum:"0" maximum:"1000000" doc:"How many slots of its node's capacity it takes. Default 1."`
	ConcurrencyKey   string      `json:"concurrencyKey,omitempty" maxLength:"256" doc:"No more tasks of one key are on nodes at once than concurrencyLimit."`
	ConcurrencyLimit int         `json:"concurrencyLimit,omitempty" minimum:"0" maximum:"1000000" doc:"Default 1."`
	Pool             string      `json:"pool,omitempty" maxLength:"256" doc:"No more tasks of one pool are on nodes at once than the pool's limit, see /api/pools."`
	Dependencies     []string    `json:"dependencies,omitempty" nullable:"false" maxItems:"0" doc:"Must be empty: this version does not order tasks."`
}

// NewBackoff is the longest waits between attempts: BaseMs * Factor^(failures-1), at most MaxMs. Each wait is anything
// from 0 to that.
type NewBackoff struct {
	BaseMs int64   `json:"baseMs" required:"false" minimum:"0" maximum:"2592000000" doc:"Milliseconds. Default 1000."`
	Factor float64 `json:"factor" required:"false" minimum:"1" maximum:"100" doc:"Default 2."`
	MaxMs  int64   `json:"maxMs" required:"false" minimum:"0" maximum:"2592000000" doc:"Milliseconds. Default 300000."`
}

// BatchItem is what became of one task of a batch.
type BatchItem struct {
	ID     string `json:"id" doc:"Id of the task: the given or a new one; with status 200 and 409 that of the task that was there."`
	Status int    `json:"status" doc:"201 stored; 200 the idempotencyKey exists; 409 the id exists; 413 too large; 422 not valid; 500, 503 not stored."`
	Error  string `json:"error,omitempty" doc:"Why it was not stored."`
}

// Bulk asks one thing of all tasks that a filter selects.
type Bulk struct {
	Action string     `json:"action" enum:"cancel,pause,resume,retry" doc:"What to do."`
	Filter BulkFilter `json:"filter,omitzero" doc:"Which tasks: those that match all that is given."`
	All    bool       `json:"all,omitempty" doc:"Allows a filter that selects every task."`
	DryRun bool       `json:"dryRun,omitempty" doc:"Change nothing; say what would be."`
	Next   string     `json:"next,omitempty" maxLength:"4096" doc:"The next of the answer before."`
}

// BulkFilter selects tasks. Empty fields do not filter.
type BulkFilter struct {
	LifecycleStatus []task.Status `json:"lifecycleStatus,omitempty" nullable:"false" maxItems:"7" doc:"Only these, without regard to case."`
	ClassName       string        `json:"className,omitempty" maxLength:"256" doc:"Only this class."`
	Executor        string        `json:"executor,omitempty" maxLength:"1024" doc:"Only tasks of this node."`
	IDPrefix        string        `json:"idPrefix,omitempty" maxLength:"1024" doc:"Only ids that begin so."`
}

// BulkResult is what one request of a bulk did.
type BulkResult struct {
	Matched int    `json:"matched" doc:"Tasks that the filter selects, as far as this request went."`
	Changed int    `json:"changed" doc:"Those to which it was done, or, in a dry run, would be."`
	Skipped int    `json:"skipped" doc:"Those for which it makes no sense: they have ended, or are as asked for already."`
	Next    string `json:"next,omitempty" doc:"Give it as next to go on; absent when all is done."`
}

// TaskPage is one page of a list of tasks.
type TaskPage struct {
	Items      []task.Task `json:"items" nullable:"false"`
	Total      *int64      `json:"total,omitempty" doc:"How many match in all; not with a cursor."`
	Page       int         `json:"page,omitempty" doc:"Number of this page, from 1; not with a cursor."`
	PageSize   int         `json:"pageSize" doc:"The largest number of items that was asked for."`
	NextCursor string      `json:"nextCursor,omitempty" doc:"Give it as cursor for the next page; absent on the last one."`
}

// Node is a node as its last heartbeat describes it. The first eight fields are those of the Python Skalds.
type Node struct {
	registry.Node // its last heartbeat

	Type           string    `json:"type" doc:"The mode: node or edge."`
	Status         string    `json:"status" doc:"The state: online or draining; lost or left, for 15 minutes, if it is gone."`
	LastHeartbeat  string    `json:"lastHeartbeat" doc:"Epoch milliseconds, in digits: when this controller first saw the present heartbeat."`
	SupportedTasks []string  `json:"supportedTasks" nullable:"false" doc:"The classes it runs."`
	CurrentTasks   []string  `json:"currentTasks" doc:"Ids of the tasks it holds; null in a page of more than 100 nodes."`
	Heartbeat      int64     `json:"heartbeat" doc:"Counts its heartbeats."`
	TaskCount      int       `json:"taskCount" doc:"How many tasks it runs and holds queued."`
	Invalid        string    `json:"invalid,omitempty" doc:"What in its heartbeat cannot be; such a node gets no work."`
	Cordon         *Cordon   `json:"cordoned,omitempty" doc:"Why it takes no new work for a time."`
	Gone           *GoneNode `json:"gone,omitempty" doc:"How and when it went, and what became of its tasks; status is lost or left then."`
}

// Cordon says that a node beats, but starts nothing of what it is sent.
type Cordon struct {
	Reason string `json:"reason"`
	Since  int64  `json:"since" doc:"Epoch milliseconds."`
	Until  int64  `json:"until" doc:"Epoch milliseconds: when it is tried again."`
}

// GoneNode is an incarnation of a node that is gone, and what became of the tasks that it held then. Times are epoch
// milliseconds.
type GoneNode struct {
	ID          string `json:"id"`
	Incarnation string `json:"incarnation" doc:"The run of its process."`
	How         string `json:"how" doc:"lost: not heard of for too long; left: it drained and said goodbye; replaced: another process took its id over; evicted: it started nothing of what it was sent."`
	At          int64  `json:"at" doc:"Epoch milliseconds: when the leader found that it is gone."`
	LastSeen    int64  `json:"lastSeen,omitempty" doc:"Epoch milliseconds: its last heartbeat; absent if the leader has seen none."`
	Reassigned  int    `json:"reassigned" doc:"Tasks that went back to waiting, to run elsewhere."`
	Ended       int    `json:"ended" doc:"Tasks that ended after all."`
	Waiting     int    `json:"waiting" doc:"Tasks that are still to be taken back."`
}

// Fleet is what the leader knows of nodes beyond their heartbeats.
type Fleet struct {
	Cordoned map[string]Cordon `json:"cordoned" doc:"Nodes that take no new work for a time, by id."`
	Draining []string          `json:"draining" nullable:"false" doc:"Nodes that people drain, by id, as soon as that is stored."`
	Gone     []GoneNode        `json:"gone" nullable:"false" doc:"Nodes that have gone within 15 minutes, at most 1,000, the last first."`
}

// NodePage is one page of the nodes, in the order of their ids.
type NodePage struct {
	Items      []Node `json:"items" nullable:"false"`
	Total      int    `json:"total"`
	Page       int    `json:"page"`
	PageSize   int    `json:"pageSize"`
	NextCursor string `json:"nextCursor,omitempty" doc:"Id of the last node of this page; give it as cursor for the next page."`
	Incomplete string `json:"incomplete,omitempty" doc:"Why what only the leader knows is missing: which nodes are cordoned, and which are gone."`
}

// Dispatcher says what the dispatcher does. Only the strategy can be set here.
type Dispatcher struct {
	Strategy    string         `json:"strategy" doc:"How nodes are picked for tasks that say nothing of it: LEAST_TASKS, ROUND_ROBIN, RANDOM, ..."`
	Leader      Leader         `json:"leader" required:"false" readOnly:"true"`
	IsLeader    bool           `json:"isLeader" required:"false" readOnly:"true" doc:"Whether the controller that answers leads. The numbers are the leader's in any case."`
	LeaderError string         `json:"leaderError,omitempty" readOnly:"true" doc:"Why the leader's numbers are missing, and are all 0: nobody leads, or who does cannot be asked."`
	IntervalMs  int64          `json:"intervalMs" required:"false" readOnly:"true" doc:"Milliseconds between two rounds, if nothing wakes the dispatcher earlier."`
	Rounds      int64          `json:"rounds" required:"false" readOnly:"true" doc:"Rounds since the leader began to lead."`
	Placed      int64          `json:"placed" required:"false" readOnly:"true" doc:"Tasks placed since the leader began to lead."`
	Waiting     map[string]int `json:"waiting,omitempty" readOnly:"true" doc:"Why queues wait: reason to number of queues. READY ones are placed in their turn. See /api/system/pending for tasks."`
	LastRoundAt int64          `json:"lastRoundAt" required:"false" readOnly:"true" doc:"Epoch milliseconds; 0 = none yet."`
	Failed      int64          `json:"failed" required:"false" readOnly:"true" doc:"Tasks that were claimed, and certainly not published, and wait again."`
	Lost        int64          `json:"lost" required:"false" readOnly:"true" doc:"Claims that another change of the task came before."`
	Queues      int            `json:"queues" required:"false" readOnly:"true" doc:"Queues that are known: tasks of one queue ask for the same."`
	LastRound   Round          `json:"lastRound" required:"false" readOnly:"true" doc:"What the last round did."`
	Throttle    Throttle       `json:"throttle" required:"false" readOnly:"true" doc:"What is sent and not started, and how that slows the dispatcher down."`
	Settings    *Settings      `json:"settings,omitempty" readOnly:"true" doc:"What was changed at run time."`
	Nodes       int            `json:"nodes" required:"false" readOnly:"true" doc:"Nodes that could take work in the last round."`
	Timing      Timing         `json:"timing" required:"false" readOnly:"true"`
}

// Timing is what controllers and nodes must agree on, as the controller that answers has it. All in milliseconds.
type Timing struct {
	HeartbeatIntervalMs int64 `json:"heartbeatIntervalMs" doc:"NODE_HEARTBEAT_INTERVAL."`
	LostAfterMs         int64 `json:"lostAfterMs" doc:"NODE_LOST_AFTER."`
	StopMarginMs        int64 `json:"stopMarginMs" doc:"NODE_STOP_MARGIN."`
	LeaderLeaseMs       int64 `json:"leaderLeaseMs" doc:"LEADER_LEASE, which only controllers have."`
}

// Round is what one round of the dispatcher did.
type Round struct {
	Placed int   `json:"placed"`
	Failed int   `json:"failed"`
	TookMs int64 `json:"tookMs" doc:"Milliseconds."`
}

// Throttle says how the dispatcher slows down.
type Throttle struct {
	Unstarted  int `json:"unstarted" doc:"Tasks that are sent to nodes and that no node has reported as started."`
	MaxPending int `json:"maxPending" doc:"How many may be, then nothing is sent (DISPATCHER_MAX_PENDING); 0 = no limit."`
	Step       int `json:"step" doc:"0 = as fast as it can; from half of maxPending on the pauses between rounds grow, up to step 5."`
	MaxBacklog int `json:"maxBacklog" doc:"How many tasks may wait before submits are refused with 429 (MAX_BACKLOG); 0 = no limit."`
}

// Settings are what can be changed of the dispatcher at run time. They hold for all controllers, over restarts.
type Settings struct {
	Version          int64           `json:"version" doc:"+1 at every change."`
	Strategy         string          `json:"strategy,omitempty" doc:"Empty = as configured."`
	Paused           bool            `json:"paused" doc:"Nothing is dispatched."`
	PausedClasses    []string        `json:"pausedClasses" nullable:"false"`
	PausedNamespaces []string        `json:"pausedNamespaces" nullable:"false"`
	Rate             *Rate           `json:"rate,omitempty" doc:"Of all tasks; absent = no limit."`
	ClassRates       map[string]Rate `json:"classRates" doc:"By class; * is each class without an own one."`
	NodeRates        map[string]Rate `json:"nodeRates" doc:"By node id; * is each node without an own one."`
	NamespaceLimits  map[string]int  `json:"namespaceLimits" doc:"Tasks on nodes at once, by namespace."`
	Pools            map[string]int  `json:"pools" doc:"Tasks on nodes at once, by pool."`
}

// Rate is a token bucket.
type Rate struct {
	PerSecond float64 `json:"perSecond" minimum:"0" maximum:"1000000" doc:"Tasks that may start a second, on the average; 0 = none."`
	Burst     int     `json:"burst,omitempty" minimum:"0" maximum:"1000000" doc:"Tasks that may start at once after a pause. Default: perSecond, at least 1."`
}

// Pool is a named pool: no more of its tasks are on nodes at once than its limit.
type Pool struct {
	Name  string `json:"name"`
	Limit int    `json:"limit" minimum:"0" maximum:"10000000"`
	InUse *int   `json:"inUse,omitempty" readOnly:"true" doc:"Tasks of it that are on nodes, as the leader knows; absent where no leader answers."`
}

// Explanation says why a task is where it is, or why it waits and what would help.
type Explanation struct {
	ID        string            `json:"id"`
	Status    task.Status       `json:"lifecycleStatus"`
	Reason    string            `json:"reason" doc:"A short code: READY, NODES_FULL, BACKOFF, ..."`
	Text      string            `json:"text" doc:"The reason as a sentence."`
	Help      string            `json:"help,omitempty" doc:"What would help."`
	Until     int64             `json:"until,omitempty" doc:"Epoch milliseconds until when it waits in any case; 0 = not known."`
	Queue     string            `json:"queue,omitempty" doc:"The queue that it waits in."`
	Placement *Placement        `json:"placement,omitempty" doc:"What the nodes say to a task of its kind."`
	NotTaking map[string]string `json:"notTaking,omitempty" doc:"Nodes that are there and take no work, and why; at most ten."`
}

// Placement says how many nodes each filter takes away, in this order, and which of the others are the best.
type Placement struct {
	Strategy     string      `json:"strategy"`
	Nodes        int         `json:"nodes" doc:"That take work at all."`
	NoClass      int         `json:"noClass"`
	NoLabels     int         `json:"noLabels"`
	TooSmall     int         `json:"tooSmall" doc:"Could never hold so many slots of the class."`
	AntiAffinity int         `json:"antiAffinity" doc:"Hold a task of the same anti-affinity key."`
	Avoided      int         `json:"avoided" doc:"Were crashed by the task."`
	RateLimited  int         `json:"rateLimited" doc:"Have used up their rate limit."`
	Kept         int         `json:"kept" doc:"Take nothing, so that they become empty for a task that must be alone."`
	Full         int         `json:"full"`
	FullNodes    []string    `json:"fullNodes,omitempty" nullable:"false" doc:"At most ten of them."`
	Best         []NodeScore `json:"best,omitempty" nullable:"false" doc:"At most three, the best first."`
}

// NodeScore is how a strategy sees a node.
type NodeScore struct {
	Node  string `json:"node"`
	Score string `json:"score" doc:"In words."`
}

// Pending groups all tasks that wait by reason.
type Pending struct {
	Total  int64          `json:"total"`
	Groups []PendingGroup `json:"groups" nullable:"false" doc:"The largest first."`
}

// PendingGroup is the tasks that wait for one reason.
type PendingGroup struct {
	Reason string   `json:"reason"`
	Tasks  int64    `json:"tasks"`
	Queues int      `json:"queues,omitempty"`
	Text   string   `json:"text,omitempty" doc:"The reason as a sentence, of the largest queue."`
	Help   string   `json:"help,omitempty"`
	Sample []string `json:"sample,omitempty" nullable:"false" doc:"Some of the queues, those with the most tasks first."`
}

// Leader is the controller that dispatches.
type Leader struct {
	Holder  string `json:"holder" doc:"Run id of the controller; empty = nobody."`
	Address string `json:"address" doc:"Where its API listens."`
	Term    int64  `json:"term"`
}

// NotReady is one part that a controller still misses.
type NotReady struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status   string     `json:"status" enum:"ready,not ready"`
	NotReady []NotReady `json:"notReady,omitempty" nullable:"false"`
}

// Detail is one thing that is wrong with a request.
type Detail struct {
	Message  string `json:"message,omitempty"`
	Location string `json:"location,omitempty"` // such as body.priority
	Value    any    `json:"value,omitempty"`
}
