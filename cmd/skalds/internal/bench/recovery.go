package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// What is taken away in the scenario Recovery.
const (
	FaultKill    = "kill"    // SIGKILL of a node; another node takes over
	FaultRestart = "restart" // SIGKILL of a node, which is started again at once
	FaultTerm    = "term"    // SIGTERM of a node with DRAIN_SOFT=0; another node takes over
	FaultLeader  = "leader"  // SIGKILL of the controller that leads, of two that the bench has started
)

// Faults returns every fault.
func Faults() []string { return []string{FaultKill, FaultRestart, FaultTerm, FaultLeader} }

// handlerSleep is how long the handler of a recovery runs: longer than any recovery takes.
const handlerSleep = time.Hour

// Sleep is the handler of the nodes in a recovery. It runs until it is told to end.
func Sleep(ctx context.Context, _ any) (any, error) {
	timer := time.NewTimer(handlerSleep)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx) //nolint:wrapcheck // the node knows it
	case <-timer.C:
		return nil, nil
	}
}

// RecoveryReport says how long it took until the tasks of the node that was taken away ran again, in milliseconds from
// the signal.
type RecoveryReport struct {
	Scenario string        `json:"scenario"`
	Fault    string        `json:"fault"`
	Timing   client.Timing `json:"timing"` // of the server; the nodes of the bench had the same
	Tasks    int           `json:"tasks"`
	Again    Spread        `json:"runAgainMs"`
}

// recoveryBench runs the scenario with node processes of its own, for a class that only they know.
type recoveryBench struct {
	api    *client.Client
	class  string
	prefix string
	tasks  int
	fault  string
	state  string // directory in which the nodes keep their locks
	timing client.Timing
}

// Recover runs tasks on a node process of its own, takes the node away as o.Fault says, and measures until all run
// again. All of it must be done within o.Timeout.
func Recover(ctx context.Context, api *client.Client, o Options) (RecoveryReport, error) {
	state, err := os.MkdirTemp("", "skalds-bench-")
	if err != nil {
		return RecoveryReport{}, fmt.Errorf("make a state directory for the nodes: %w", err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	d, err := api.Dispatcher(ctx)
	if err != nil {
		return RecoveryReport{}, err
	}
	name := "bench-" + runName()
	b := &recoveryBench{
		api: api, class: name, prefix: name + "-", tasks: o.Tasks, fault: o.Fault, state: state, timing: d.Timing,
	}
	return b.run(ctx)
}

func (b *recoveryBench) run(ctx context.Context) (RecoveryReport, error) {
	victim, err := b.node(ctx, "a")
	if err != nil {
		return RecoveryReport{}, err
	}
	defer func() { victim.end() }()
	if err := b.submit(ctx); err != nil {
		return RecoveryReport{}, err
	}
	if _, err := b.running(ctx, 1); err != nil {
		return RecoveryReport{}, fmt.Errorf("wait until the tasks run: %w", err)
	}
	if b.fault != FaultRestart {
		other, err := b.node(ctx, "b")
		if err != nil {
			return RecoveryReport{}, err
		}
		defer other.end()
	}
	defer b.cancelAll(context.WithoutCancel(ctx)) // before the nodes end
	sig := syscall.SIGKILL
	if b.fault == FaultTerm {
		sig = syscall.SIGTERM
	}
	at, err := victim.signal(sig)
	if err != nil {
		return RecoveryReport{}, err
	}
	if b.fault == FaultRestart {
		<-victim.done
		if victim, err = b.start(ctx, "a"); err != nil {
			return RecoveryReport{}, err
		}
	}
	starts, err := b.running(ctx, 2)
	if err != nil {
		return RecoveryReport{}, fmt.Errorf("wait until the tasks run again: %w", err)
	}
	for i := range starts {
		starts[i] -= at.UnixMicro()
	}
	return RecoveryReport{Scenario: Recovery, Fault: b.fault, Timing: b.timing, Tasks: b.tasks, Again: spreadOf(starts)}, nil
}

// start starts a node process.
func (b *recoveryBench) start(ctx context.Context, id string) (*child, error) {
	env := append(timingEnv(b.timing), "SKALD_ID="+b.prefix+id, "NODE_CAPACITY="+strconv.Itoa(b.tasks), "SKALD_STATE_DIR="+b.state, "DRAIN_SOFT=0s")
	return startChild(ctx, env, "node", "--bench-class", b.class)
}

// node starts a node process and waits until it has joined.
func (b *recoveryBench) node(ctx context.Context, id string) (*child, error) {
	c, err := b.start(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := awaitNode(ctx, b.api, b.prefix+id); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (b *recoveryBench) submit(ctx context.Context) error {
	tasks := make([]client.NewTask, b.tasks)
	for i := range tasks {
		tasks[i] = client.NewTask{ID: b.prefix + strconv.Itoa(i), ClassName: b.class}
	}
	items, err := b.api.SubmitBatch(ctx, tasks)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.Error != "" {
			return fmt.Errorf("submit %s: %s", it.ID, it.Error)
		}
	}
	return nil
}

// running waits until all tasks run in this attempt or a later one, and returns their starts, in epoch microseconds.
func (b *recoveryBench) running(ctx context.Context, attempt int64) ([]int64, error) {
	var starts []int64
	err := poll(ctx, func() (bool, error) {
		page, err := b.api.List(ctx, client.Query{IDPrefix: b.prefix, Status: []task.Status{task.Running}, PageSize: b.tasks})
		if err != nil {
			return false, err
		}
		starts = starts[:0]
		for i := range page.Items {
			if t := &page.Items[i]; t.Attempt >= attempt {
				starts = append(starts, startedOf(t))
			}
		}
		return len(starts) == b.tasks, nil
	})
	return starts, err
}

// cancelAll ends the tasks, so that no other node waits for them.
func (b *recoveryBench) cancelAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for i := range b.tasks {
		if _, err := b.api.Cancel(ctx, b.prefix+strconv.Itoa(i)); errors.Is(err, client.ErrUnreachable) {
			return
		}
	}
}
