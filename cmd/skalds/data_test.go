package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/embedded"
	"github.com/skalds-go/skalds/pkg/task"
)

// startOn runs `skalds dev` on a data directory as a process of its own.
func startOn(t *testing.T, dir string, args ...string) (*program, *client.Client) {
	t.Helper()
	p := start(t, nil, append([]string{"dev", "--data", dir, "--kafka-port", "0", "--redis-port", "0", "--http-port", "0"}, args...)...)
	server := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.await(t, " nodes list"))
	c, err := client.New(client.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return p, c
}

func (p *program) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	if s := p.wait(t); !s.Signaled() {
		t.Fatalf("it ended with %v before it was killed:\n%s", s, p.err)
	}
}

// list reads all tasks of a prefix.
func list(t *testing.T, c *client.Client, prefix string) map[string]task.Task {
	t.Helper()
	all := make(map[string]task.Task)
	for q := (client.Query{IDPrefix: prefix, PageSize: maxPage}); ; {
		page, err := c.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			all[page.Items[i].ID] = page.Items[i]
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

// awaitAll returns when n tasks of a prefix have come to a status.
func awaitAll(t *testing.T, c *client.Client, prefix string, n int64, statuses ...task.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		page, err := c.List(ctx, client.Query{IDPrefix: prefix, Status: statuses, PageSize: 1})
		if err != nil {
			t.Fatalf("%d tasks %v: %v", n, statuses, err)
		}
		if page.Total != nil && *page.Total >= n {
			return
		}
	}
}

// TestDataOutlivesAKill kills `skalds dev` while it works, twice: every task that was acknowledged comes to its end,
// once, with its own result.
func TestDataOutlivesAKill(t *testing.T) {
	t.Parallel()
	const tasks, batch = 2000, 500
	dir := filepath.Join(t.TempDir(), "data")
	p, c := startOn(t, dir)
	for from := 0; from < tasks; from += batch {
		many := make([]client.NewTask, batch)
		for i := range many {
			n := from + i
			many[i] = client.NewTask{ID: fmt.Sprintf("kill-%04d", n), ClassName: demo.ClassEcho, Attachments: json.RawMessage(strconv.Itoa(n))}
			if n%50 == 0 {
				many[i].ClassName, many[i].Attachments = demo.ClassSleep, json.RawMessage(`{"ms":300}`)
			}
		}
		items, err := c.SubmitBatch(t.Context(), many)
		if err != nil {
			t.Fatal(err)
		}
		for i := range items {
			if items[i].Status != http.StatusCreated {
				t.Fatalf("%+v", items[i])
			}
		}
	}
	ended := make(map[string]task.Task) // as they were seen first
	for _, killAt := range []int64{200, 900} {
		awaitAll(t, c, "kill-", killAt, task.Finished)
		for id, tk := range list(t, c, "kill-") {
			if _, seen := ended[id]; !seen && tk.LifecycleStatus == task.Finished {
				ended[id] = tk
			}
		}
		p.kill(t)
		p, c = startOn(t, dir)
	}
	awaitAll(t, c, "kill-", tasks, task.Finished, task.Failed, task.Cancelled)
	all := list(t, c, "kill-")
	if len(all) != tasks {
		t.Errorf("%d tasks are there", len(all))
	}
	again := 0
	for id, got := range all {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "kill-"))
		if err != nil || got.LifecycleStatus != task.Finished || n%50 != 0 && string(got.Result) != strconv.Itoa(n) {
			t.Errorf("%s ended %s with %s: %s", id, got.LifecycleStatus, got.Result, got.Error)
		}
		if was, seen := ended[id]; seen && (was.Attempt != got.Attempt || was.FinishDateTime != got.FinishDateTime) {
			t.Errorf("%s had finished and ran again: attempt %d, then %d", id, was.Attempt, got.Attempt)
		}
		if got.Attempt > 1 {
			again++
		}
	}
	t.Logf("%d tasks ran more than once", again)
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
}

// TestDataIsForOneClusterAtATime: a second one is told who has the directory.
func TestDataIsForOneClusterAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _ := startOn(t, dir, "--nodes", "0")
	a := call(t, "dev", "--data", dir, "--nodes", "0", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0")
	if want := fmt.Sprintf("%s: in use by another process (pid %d)", filepath.Join(dir, "lock"), p.cmd.Process.Pid); a.code != exitUsage || !strings.Contains(a.err, want) {
		t.Errorf("exit code %d: %s; want %s", a.code, a.err, want)
	}
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
	p, _ = startOn(t, dir, "--nodes", "0")
	p.kill(t)
}

// TestControllerKeepsTasksInAFile: STORE=sqlite, and a file that another controller has.
func TestControllerKeepsTasksInAFile(t *testing.T) {
	t.Parallel()
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	redis, err := embedded.StartRedis(embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	path := filepath.Join(t.TempDir(), "tasks.db")
	env := []string{
		fmt.Sprintf("KAFKA_PORT=%d", portOf(broker.Addr())), fmt.Sprintf("REDIS_PORT=%d", portOf(redis.Addr())), "KAFKA_TOPIC_PARTITIONS=1",
		"STORE=sqlite", "SQLITE_PATH=" + path, "SYSTEM_CONTROLLER_PORT=" + freePort(t),
	}
	server := "http://127.0.0.1:" + strings.TrimPrefix(env[len(env)-1], "SYSTEM_CONTROLLER_PORT=")
	p := start(t, env, "controller")
	awaitHealth(t, server)
	id := strings.TrimSpace(want(t, 0, "task", "submit", "nobody.knows", "-o", "name", "--server", server).out)
	second := start(t, append(env, "SYSTEM_CONTROLLER_PORT=0"), "controller")
	if s := second.wait(t); s.ExitStatus() != exitNo || !strings.Contains(second.err.String(), path+" cannot be opened: ") {
		t.Errorf("the second controller ended with %v:\n%s", s, second.err)
	}
	p.kill(t)
	p = start(t, env, "controller")
	awaitHealth(t, server)
	if got := decode[task.Task](t, want(t, 0, "task", "show", id, "-o", "json", "--server", server)); got.LifecycleStatus != task.Created {
		t.Errorf("after a kill the task is %+v", got)
	}
	p.kill(t)
}

// awaitHealth returns when a server is ready.
func awaitHealth(t *testing.T, server string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := awaitReady(ctx, server, 0); err != nil {
		t.Fatal(err)
	}
}
