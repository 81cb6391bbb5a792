package bench

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

const (
	// leaderNodes is how many nodes the bench starts.
	leaderNodes = 2
	// killAfter is the part of the tasks that is submitted before the leader is killed: a third.
	killAfter = 3

	loopback = "127.0.0.1"
)

// LeaderReport says how the cluster got over the death of its leader.
type LeaderReport struct {
	Report

	Fault  string        `json:"fault"`
	Timing client.Timing `json:"timing"`
	Pause  float64       `json:"longestPauseMs"` // the longest time after the kill in which no task started
}

// member is a controller of the bench.
type member struct {
	*child

	api *client.Client
}

// KillLeader starts two controllers and two nodes by the variables of the environment, kills the controller that leads
// while tasks come in, and measures how long no task starts. token is that of the controllers' API.
func KillLeader(ctx context.Context, token string, o Options) (LeaderReport, error) {
	l := &leaderBench{o: o, token: token, prefix: "bench-" + runName() + "-"}
	defer l.end()
	setup, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := l.start(ctx, setup); err != nil {
		return LeaderReport{}, err
	}
	b := newBench(l.follower.api, o)
	b.before = l.kill
	report := LeaderReport{Fault: FaultLeader}
	var err error
	if report.Report, err = b.measure(ctx); err != nil {
		return LeaderReport{}, err
	}
	d, err := l.follower.api.Dispatcher(ctx)
	if err != nil {
		return LeaderReport{}, err
	}
	report.Timing, report.Pause = d.Timing, longestPause(b.runs, l.killed.UnixMicro())
	return report, nil
}

// leaderBench is a cluster of processes on the services that the environment names.
type leaderBench struct {
	o                Options
	token, prefix    string
	leader, follower member
	nodes            []*child
	killed           time.Time
}

// start starts two controllers and their nodes, and returns when all are ready. They live until life ends, or end is
// called.
func (l *leaderBench) start(life, ctx context.Context) error {
	members := make([]member, 2)
	for i := range members {
		port, err := findPort(ctx)
		if err != nil {
			return err
		}
		m := &members[i]
		if m.api, err = client.New(client.Config{Server: "http://" + net.JoinHostPort(loopback, port), Token: l.token}); err != nil {
			return err
		}
		m.child, err = startChild(life, []string{
			"SYSTEM_CONTROLLER_MODE=" + string(config.ModeDispatcher), "SYSTEM_CONTROLLER_HOST=" + loopback, "SYSTEM_CONTROLLER_PORT=" + port,
		}, "controller")
		if err != nil {
			m.api.Close()
			return err
		}
		if i == 0 {
			l.leader = *m
		} else {
			l.follower = *m
		}
	}
	if err := l.elect(ctx); err != nil {
		return err
	}
	for i := range leaderNodes {
		id := l.prefix + strconv.Itoa(i+1)
		n, err := startChild(life, []string{"SKALD_ID=" + id, "DRAIN_SOFT=0s"}, "node")
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, n)
		if err := awaitNode(ctx, l.follower.api, id); err != nil {
			return err
		}
	}
	return nil
}

// elect waits until both controllers are ready and one of them leads, and finds out which.
func (l *leaderBench) elect(ctx context.Context) error {
	leads := ""
	err := poll(ctx, func() (bool, error) {
		for _, m := range []*member{&l.leader, &l.follower} {
			if missing, err := m.api.Ready(ctx); err != nil || len(missing) > 0 {
				return false, nil //nolint:nilerr // not yet
			}
			d, err := m.api.Dispatcher(ctx)
			if err != nil {
				return false, nil //nolint:nilerr // not yet
			}
			if leads = d.Leader.Address; d.IsLeader {
				if m == &l.follower {
					l.leader, l.follower = l.follower, l.leader
				}
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until a controller of the bench leads (now it is %s): %w", cmp.Or(leads, "none"), err)
	}
	return nil
}

// kill kills the leader once a part of the tasks has been submitted.
func (l *leaderBench) kill(submitted int) (err error) {
	if l.killed.IsZero() && submitted >= l.o.Tasks/killAfter {
		l.killed, err = l.leader.signal(syscall.SIGKILL)
	}
	return err
}

func (l *leaderBench) end() {
	for _, n := range l.nodes {
		n.end()
	}
	for _, m := range []member{l.leader, l.follower} {
		if m.child != nil {
			m.end()
			m.api.Close()
		}
	}
}

// longestPause is the longest time after the kill, in milliseconds, in which no task started.
func longestPause(runs []run, killedUs int64) float64 {
	var starts []int64
	for i := range runs {
		if at := runs[i].started; at > killedUs {
			starts = append(starts, at)
		}
	}
	slices.Sort(starts)
	last, longest := killedUs, int64(0)
	for _, at := range starts {
		longest = max(longest, at-last)
		last = at
	}
	return float64(longest) / 1000
}

// findPort returns a port that was free a moment ago.
func findPort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err //nolint:wrapcheck // the address of a listener is well-formed
}
