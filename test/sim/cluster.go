package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store/memory"
)

// settings is the shape of one simulation. Times are the defaults of the configuration where it has any.
type settings struct {
	nodes, controllers, tasks int
	capacity, prefetch        int
	partitions                int
	strategy                  placement.Strategy
	requests                  int  // requests of people for tasks
	longest                   int  // ms that a task takes at most
	drains                    int  // how often people drain a node, or undo that
	stateDir                  bool // nodes have a SKALD_STATE_DIR
	deadly                    int  // so many tasks kill the process that runs them
	deaf                      int  // number of the task that ignores the end of its context; 0 = none
	replicas                  int  // REDIS_WAIT_REPLICAS: 0 or 1
	asks                      bool // tasks ask for this and that, and people change the settings at run time
	keyed                     int  // of 1000 such tasks so many have a concurrency key
	settingsChanges           int  // how often people change the settings
	sideSlots                 int  // of a node for the second class
	order                     fairqueue.Mode
	outages                   bool // nothing goes wrong but that dependencies go away and controllers change
	timed                     int  // of 1000 tasks so many have a notBefore, as many a deadline, and as many a timeout

	heartbeat, lostAfter, stopMargin time.Duration
	lease, resendAfter, interval     time.Duration
	watch                            time.Duration // MONITOR_SKALD_INTERVAL

	retention  time.Duration
	maxPending int // tasks that are sent and not started; 0 = any number

	faults time.Duration // how long faults happen
	rest   time.Duration // how long everything may take to end after them
}

// guards are the parts of the system that keep a guarantee, and that a simulation can do without, to see that the
// checker notices.
type guards struct {
	noCompare       bool // claims are written whatever the task has become
	noTerm          bool // nodes obey any leader
	noResend        bool // claims that no node has reported are not sent again
	trustFromAnswer bool // trust is counted from a heartbeat's answer
	noDrift         bool // clocks are taken for exact
	noReadBack      bool // all claims of a bulk write count as won
	noAdopt         bool // a claim is undone even if another leader has adopted it
	unclaimUnknown  bool // a claim is undone even if its publish may have happened
	noDesired       bool // writes do not depend on what people request meanwhile
	noRepeat        bool // requests are forwarded to nodes only once
	noProof         bool // a node says of its predecessor that it is dead, without a lock
	noAlone         bool // a task that processes died of runs beside others
	noWait          bool // a heartbeat counts before the replica has it
	noPermit        bool // the store lets two tasks hold one permit
	noListen        bool // a leader hears no heartbeats before it knows from where to read reports
	noPause         bool // a step that failed is followed by the next one at once
	noSlowing       bool // the dispatcher does not slow down when too much is sent and has not begun
	noBarrier       bool // work is reassigned although ingest has not read what is under way
}

// cluster is the simulated system: services, controllers, nodes and people.
type cluster struct {
	world       *world
	cfg         settings
	guards      guards
	net         *net
	truth       *truth
	broker      *broker
	redis       *redis
	check       *checker
	controllers []*controller
	workers     []*worker
	people      *people
	started     int // processes
	files       map[string]*lockFile
}

func newCluster(w *world, cfg settings, g guards) *cluster {
	cl := &cluster{world: w, cfg: cfg, guards: g, net: &net{world: w}, files: map[string]*lockFile{}}
	cl.check = newChecker(w, &cl.cfg)
	cl.truth = &truth{world: w, net: cl.net, mem: memory.New(), guards: g, check: cl.check}
	cl.check.truth, cl.check.cluster = cl.truth, cl
	cl.broker = newBroker(w, cl.net, cl.check, cfg.partitions)
	cl.redis = newRedis(w, cl.net, cl.check, cfg.replicas)
	for i := range cfg.controllers {
		cl.controllers = append(cl.controllers, cl.startController(name("ctl", i)))
	}
	for i := range cfg.nodes {
		cl.workers = append(cl.workers, cl.startWorker(name("n", i)))
	}
	cl.people = cl.startPeople()
	return cl
}

// name numbers things from 1.
func name(what string, i int) string {
	digits := []byte{}
	for i++; i > 0; i /= 10 {
		digits = append([]byte{byte('0' + i%10)}, digits...)
	}
	return what + string(digits)
}

// speed draws how fast a clock runs: often as wrong as it may be.
func (cl *cluster) speed() int64 {
	switch cl.world.rng.IntN(8) {
	case 0, 1, 2:
		return slowest
	case 3, 4, 5:
		return fastest
	}
	return slowest + cl.world.rng.Int64N(fastest-slowest+1)
}

// quiet reports whether everything is over: the tasks have ended, and neither the leader nor a node holds a claim.
func (cl *cluster) quiet() bool {
	return cl.people.threads == 0 && cl.check.acked == cl.cfg.tasks && cl.check.allEnded() && cl.held() == 0
}

// crash kills a worker, which is started again after a while.
func (n *worker) crash(after time.Duration) {
	n.world.kill(n.process)
	n.world.after(after, func() {
		if i := slices.Index(n.workers, n); i >= 0 {
			n.reviveWorker(i)
		}
	})
}

// reviveWorker starts a dead worker again, under the same id or, now and then, another one; one that is stopping, when
// it has stopped.
func (cl *cluster) reviveWorker(i int) {
	switch n := cl.workers[i]; {
	case n.process.dead:
		id := n.id
		if cl.world.chance(250) {
			id += "x"
		}
		cl.workers[i] = cl.startWorker(id)
	case n.stopping:
		cl.world.after(reviveAgain, func() { cl.reviveWorker(i) })
	}
}

// held returns how many claims the leader and the nodes hold; -1 if nobody leads.
func (cl *cluster) held() int {
	total, led := 0, false
	for _, c := range cl.controllers {
		if l := c.leading(); l != nil {
			_, claims := l.term.Fleet.Size()
			total, led = total+claims, true
		}
	}
	for _, n := range cl.workers {
		if n.session != nil && !n.process.dead {
			total += n.session.Held()
		}
	}
	if !led {
		return -1
	}
	return total
}

func sortBy[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
