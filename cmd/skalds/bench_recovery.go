package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// recovery is the scenario that takes a node away from running tasks.
const recovery = "recovery"

// What happens to the node, and how many tasks run on it.
const (
	faultKill    = "kill"    // SIGKILL; another node takes over
	faultRestart = "restart" // SIGKILL, and the same node is started again at once
	faultTerm    = "term"    // SIGTERM with DRAIN_SOFT=0; another node takes over

	recoveryTasks = 100
	recoverySleep = time.Hour
)

// recoveryReport is how long it took until the tasks of the node that was taken away ran again, in milliseconds from the signal.
type recoveryReport struct {
	Scenario string        `json:"scenario"`
	Fault    string        `json:"fault"`
	Timing   client.Timing `json:"timing"` // of the server; the nodes of the bench had the same
	Tasks    int           `json:"tasks"`
	Again    spread        `json:"runAgainMs"`
}

func (r *recoveryReport) print(w io.Writer) error {
	p := newPairs(w)
	p.add("Fault", r.Fault)
	p.add("Settings", timingText(r.Timing))
	p.add("Tasks", thousands(int64(r.Tasks)))
	p.add("Run again after", r.Again.String())
	return p.flush()
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

func runRecovery(cmd *cobra.Command, c *client.Client, f format, o benchOptions) error {
	state, err := os.MkdirTemp("", "skalds-bench-")
	if err != nil {
		return fmt.Errorf("make a state directory for the nodes: %w", err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	d, err := c.Dispatcher(ctx)
	if err != nil {
		return err
	}
	name := "bench-" + runName()
	b := &recoveryBench{api: c, class: name, prefix: name + "-", tasks: o.tasks, fault: o.fault, state: state, timing: d.Timing}
	report, err := b.run(ctx)
	if err != nil {
		return err
	}
	if f == asJSON {
		return printJSON(cmd.OutOrStdout(), report)
	}
	return report.print(cmd.OutOrStdout())
}

func (b *recoveryBench) run(ctx context.Context) (recoveryReport, error) {
	victim, err := b.node(ctx, "a")
	if err != nil {
		return recoveryReport{}, err
	}
	defer func() { victim.end() }()
	if err := b.submit(ctx); err != nil {
		return recoveryReport{}, err
	}
	if _, err := b.running(ctx, 1); err != nil {
		return recoveryReport{}, fmt.Errorf("wait until the tasks run: %w", err)
	}
	if b.fault != faultRestart {
		other, err := b.node(ctx, "b")
		if err != nil {
			return recoveryReport{}, err
		}
		defer other.end()
	}
	defer b.cancelAll(context.WithoutCancel(ctx)) // before the nodes end
	sig := syscall.SIGKILL
	if b.fault == faultTerm {
		sig = syscall.SIGTERM
	}
	at, err := victim.signal(sig)
	if err != nil {
		return recoveryReport{}, err
	}
	if b.fault == faultRestart {
		<-victim.done
		if victim, err = b.start(ctx, "a"); err != nil {
			return recoveryReport{}, err
		}
	}
	starts, err := b.running(ctx, 2)
	if err != nil {
		return recoveryReport{}, fmt.Errorf("wait until the tasks run again: %w", err)
	}
	for i := range starts {
		starts[i] -= at.UnixMicro()
	}
	return recoveryReport{Scenario: recovery, Fault: b.fault, Timing: b.timing, Tasks: b.tasks, Again: spreadOf(starts)}, nil
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

// running waits until all tasks run in this attempt or a later one, and gives their starts, in epoch microseconds.
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
