package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
)

// childGrace is how long a child may take to stop by itself.
const childGrace = 10 * time.Second

// child is a process of this program that the bench has started.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startChild starts this program with the bench's environment and more. It is killed when ctx ends.
func startChild(ctx context.Context, env []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program itself
	cmd.Env = slices.Concat(os.Environ(), []string{"LOG_LEVEL=" + cmp.Or(os.Getenv("LOG_LEVEL"), "error")}, env)
	cmd.Stderr = os.Stderr
	together(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the bench ends it
		close(c.done)
	}()
	return c, nil
}

// signal sends a signal and returns the time just before.
func (c *child) signal(s syscall.Signal) (time.Time, error) {
	at := time.Now()
	if err := c.cmd.Process.Signal(s); err != nil {
		return at, fmt.Errorf("signal process %d: %w", c.cmd.Process.Pid, err)
	}
	return at, nil
}

// end stops the process, and kills one that does not stop.
func (c *child) end() {
	_, _ = c.signal(syscall.SIGTERM)
	timer := time.NewTimer(childGrace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// timingEnv has a node work as the server's controllers do.
func timingEnv(t client.Timing) []string {
	ms := func(name string, ms int64) string { return name + "=" + strconv.FormatInt(ms, 10) + "ms" }
	return []string{
		ms("NODE_HEARTBEAT_INTERVAL", t.HeartbeatIntervalMs), ms("NODE_LOST_AFTER", t.LostAfterMs), ms("NODE_STOP_MARGIN", t.StopMarginMs),
		"MONITOR_HEARTBEAT_TIMEOUT=", // another name of NODE_LOST_AFTER
	}
}

// poll asks until the answer is yes.
func poll(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// awaitNode returns when a node has joined.
func awaitNode(ctx context.Context, api *client.Client, id string) error {
	err := poll(ctx, func() (bool, error) {
		n, err := api.Node(ctx, id)
		if client.IsStatus(err, 404) {
			return false, nil
		}
		return err == nil && n.Gone == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until node %s joins: %w", id, err)
	}
	return nil
}
