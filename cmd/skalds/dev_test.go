package main

import (
	"encoding/json"
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/embedded"
	"github.com/skalds-go/skalds/pkg/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(text) {
		t.Errorf("%s has changed (-update writes it anew); it is now:\n%s", path, got)
	}
}

// words splits a command as a shell does that has single quotes only.
func words(line string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`'([^']*)'|\S+`).FindAllStringSubmatch(line, -1) {
		if strings.HasPrefix(m[0], "'") {
			list = append(list, m[1])
			continue
		}
		list = append(list, m[0])
	}
	return list
}

// TestNewcomer types what skalds dev prints.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	var commands [][]string
	for line := range strings.Lines(d.banner) {
		if _, args, ok := strings.Cut(strings.TrimSpace(line), "go run ./cmd/skalds "); ok {
			commands = append(commands, words(args))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("it prints %d commands to try, want 3:\n%s", len(commands), d.banner)
	}
	a := want(t, 0, commands[0]...)
	for _, text := range []string{"Finished", `Result       {"x":1}`, "demo.echo", "node-"} {
		if !strings.Contains(a.out, text) {
			t.Errorf("the finished task lacks %q:\n%s", text, a.out)
		}
	}
	if a := want(t, 0, commands[1]...); strings.Count(a.out, "online") != 2 {
		t.Errorf("not two nodes are online:\n%s", a.out)
	}
}

func TestBanner(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "4", "--capacity", "3")
	text := d.banner
	for name, port := range map[string]string{"HTTP": d.server[strings.LastIndexByte(d.server, ':')+1:], "KAFKA": d.kafkaPort, "REDIS": d.redisPort} {
		text = strings.ReplaceAll(text, port, name)
	}
	golden(t, "banner.txt", text)
}

func TestBannerOfTheDefaultPorts(t *testing.T) {
	t.Parallel()
	text := banner("skalds", addresses{api: "127.0.0.1:8000", kafka: "127.0.0.1:9092", redis: "127.0.0.1:6379"}, nil, 16)
	golden(t, "banner-default.txt", text)
	text = banner("bin/skalds", addresses{api: "127.0.0.1:8000", kafka: "127.0.0.1:9092", redis: "127.0.0.1:6379"}, []string{"node-1", "node-2"}, 16)
	golden(t, "banner-nodes.txt", text)
}

func TestTakenPortNamesItsFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(portOf(taken.Addr().String()))
	for _, flag := range []string{"--kafka-port", "--redis-port", "--http-port"} {
		t.Run(flag, func(t *testing.T) {
			args := []string{"dev", "--nodes", "0", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0", flag, port}
			a := want(t, exitUsage, args...)
			if !strings.Contains(a.err, flag+": port "+port+" is taken") || a.out != "" {
				t.Errorf("it says %q and %q", a.err, a.out)
			}
		})
	}
}

func TestInterruptDrains(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	id := strings.TrimSpace(want(t, 0, "task", "submit", "demo.sleep", "-a", `{"ms":300}`, "-o", "name", "--server", d.server).out)
	awaitStatus(t, d.server, id, task.Running)
	ended := make(chan answered, 1)
	go func() { ended <- call(t, "task", "wait", id, "-o", "json", "--server", d.server) }()
	d.interrupt()
	if code := d.awaitEnd(t); code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
	<-ended // however it ended: the API may be gone before the answer
}

// awaitStatus returns when the task has the status.
func awaitStatus(t *testing.T, server, id string, status task.Status) task.Task {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; {
		got := decode[task.Task](t, want(t, 0, "task", "show", id, "-o", "json", "--server", server))
		if got.LifecycleStatus == status {
			return got
		}
	}
	t.Fatalf("task %s never was %s", id, status)
	return task.Task{}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"LOG_LEVEL=info"}, "dev", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0")
	text := p.out.await(t, " node\n")
	server := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(text)
	id := strings.TrimSpace(want(t, 0, "task", "submit", "demo.sleep", "-a", `{"ms":60000}`, "-o", "name", "--server", server).out)
	awaitStatus(t, server, id, task.Running)
	p.signal(t, syscall.SIGINT)
	p.err.await(t, "draining")
	p.signal(t, syscall.SIGINT)
	if s := p.wait(t); !s.Signaled() || s.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want the second signal to end it", s)
	}
}

// TestSecondSignalHurriesANode: the hour of DRAIN_SOFT is cut short, and the task is given back.
func TestSecondSignalHurriesANode(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	p := start(t, append(d.reach(), "DRAIN_SOFT=1h"), "node")
	id := strings.TrimSpace(want(t, 0, "task", "submit", "demo.sleep", "-a", `{"ms":3600000}`, "-o", "name", "--server", d.server).out)
	awaitStatus(t, d.server, id, task.Running)
	p.signal(t, syscall.SIGTERM)
	p.err.await(t, "draining")
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 || s.Signaled() {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
	got := awaitStatus(t, d.server, id, task.Created)
	if len(got.Attempts) != 1 || got.Attempts[0].Outcome != "released" {
		t.Errorf("its run is told as %+v", got.Attempts)
	}
}

func TestNodeOfAnotherProcessJoins(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	p := start(t, d.reach(), "node")
	a := want(t, 0, "task", "submit", "demo.echo", "-a", `"hello"`, "--wait", "-o", "json", "--server", d.server)
	if got := decode[task.Task](t, a); string(got.Result) != `"hello"` || got.Executor == "" {
		t.Errorf("the task is %+v", got)
	}
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 {
		t.Errorf("the node ended with %v:\n%s", s, p.err)
	}
	if left := decode[[]client.Node](t, want(t, 0, "nodes", "list", "-o", "json", "--server", d.server)); len(left) != 1 || left[0].Status != "left" || left[0].Gone == nil {
		t.Errorf("it left, but is shown as %+v", left)
	}
}

// TestStartOrderDoesNotMatter starts controller and node before what they stand on.
func TestStartOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	env := []string{
		"KAFKA_PORT=" + freePort(t), "REDIS_PORT=" + freePort(t), "SYSTEM_CONTROLLER_PORT=" + freePort(t),
		"STORE=memory", "KAFKA_TOPIC_PARTITIONS=2",
	}
	port := func(i int) string { _, p, _ := strings.Cut(env[i], "="); return p }
	n := start(t, env, "node")
	c := start(t, env, "controller")
	n.err.await(t, "waits for Kafka")
	c.err.await(t, "the topics are not ready")
	server := "http://127.0.0.1:" + port(2)
	if a := want(t, exitNo, "health", "--server", server); !strings.Contains(a.err, "not ready: ") || !strings.Contains(a.err, "kafka") {
		t.Errorf("health says %q", a.err)
	}

	kafkaPort, _ := strconv.Atoi(port(0))
	broker, err := embedded.StartKafka(embedded.KafkaConfig{Port: kafkaPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	redisPort, _ := strconv.Atoi(port(1))
	redis, err := embedded.StartRedis(embedded.RedisConfig{Port: redisPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)

	want(t, 0, "task", "submit", "demo.echo", "--wait", "--server", server)
	want(t, 0, "health", "--server", server)
	n.signal(t, syscall.SIGTERM)
	if s := n.wait(t); s.ExitStatus() != 0 {
		t.Errorf("the node ended with %v:\n%s", s, n.err)
	}
	c.signal(t, syscall.SIGTERM)
	if s := c.wait(t); s.ExitStatus() != 0 {
		t.Errorf("the controller ended with %v:\n%s", s, c.err)
	}
	if again := strings.Count(n.err.String(), "waits for Kafka"); again != 1 {
		t.Errorf("the node said %d times that it waits for Kafka, want once:\n%s", again, n.err)
	}
}

func TestControllerWaitsForMongoDB(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := start(t, []string{"MONGO_HOST=mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50", "SYSTEM_CONTROLLER_PORT=" + port}, "controller")
	p.err.await(t, "waiting for MongoDB")
	for _, command := range [][]string{{"health"}, {"task", "list"}, {"nodes", "list"}} {
		a := want(t, exitNo, append(command, "--server", "http://127.0.0.1:"+port)...)
		if !strings.Contains(a.err, "mongodb") {
			t.Errorf("%v says %q", command, a.err)
		}
	}
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(portOf(l.Addr().String()))
}

func TestBadConfigurationIsUsage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"controller", "node", "dev", "health"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"KAFKA_PORT=x", "LOG_LEVEL=loud", "SKALDS_SERVER=ftp://x"}, name)
			if s := p.wait(t); s.ExitStatus() != exitUsage {
				t.Errorf("it ended with %v", s)
			}
			problems := map[string][]string{"controller": {"KAFKA_PORT", "LOG_LEVEL"}, "node": {"KAFKA_PORT", "LOG_LEVEL"}, "dev": {"LOG_LEVEL"}, "health": {"SKALDS_SERVER"}}
			for _, variable := range problems[name] {
				if !strings.Contains(p.err.String(), variable+" is ") {
					t.Errorf("%s is not named:\n%s", variable, p.err)
				}
			}
		})
	}
}

// TestDevTakesItsSettingsFromTheEnvironment: the controller's, and those of the nodes.
func TestDevTakesItsSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"NODE_HEARTBEAT_INTERVAL=250ms", "NODE_LOST_AFTER=2s", "NODE_STOP_MARGIN=250ms", "LEADER_LEASE=1s", "NODE_CAPACITY=3", "NODE_LABELS=zone=a"}
	p := start(t, env, "dev", "--nodes", "1", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0")
	server := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.await(t, " node\n"))
	wanted := client.Timing{HeartbeatIntervalMs: 250, LostAfterMs: 2000, StopMarginMs: 250, LeaderLeaseMs: 1000}
	if d := decode[client.Dispatcher](t, want(t, 0, "strategy", "get", "-o", "json", "--server", server)); d.Timing != wanted {
		t.Errorf("the controller has %+v", d.Timing)
	}
	n := decode[client.Node](t, want(t, 0, "nodes", "show", "node-1", "-o", "json", "--server", server))
	if n.Capacity != 3 || n.Prefetch != 12 || n.Labels["zone"] != "a" {
		t.Errorf("the node is %+v", n)
	}
	p.signal(t, syscall.SIGTERM)
	if s := p.wait(t); s.ExitStatus() != 0 {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
}

// Before anything starts, and in the words of all other variables.
func TestAStrategyThatThereIsNotStartsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"controller": {[]string{"DISPATCHER_STRATEGY=fifo", "STORE=memory", "KAFKA_HOST=127.0.0.1", "REDIS_HOST=127.0.0.1"}, []string{"controller"}, `DISPATCHER_STRATEGY is "fifo", want one of LEAST_TASKS,`},
		"dev":        {[]string{"DISPATCHER_STRATEGY=fifo"}, []string{"dev"}, `DISPATCHER_STRATEGY is "fifo", want one of LEAST_TASKS,`},
		"flag":       {nil, []string{"dev", "--strategy", "fifo"}, `--strategy is "fifo", want one of LEAST_TASKS,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, tt.env, tt.args...)
			if s := p.wait(t); s.ExitStatus() != 2 || !strings.Contains(p.err.String(), tt.want) {
				t.Errorf("it ended with %v:\n%s", s, p.err)
			}
		})
	}
}

func TestDevTakesItsStrategyFromTheEnvironmentOrTheFlag(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"environment": {[]string{"DISPATCHER_STRATEGY=round_robin"}, nil, "ROUND_ROBIN"},
		"flag":        {[]string{"DISPATCHER_STRATEGY=round_robin"}, []string{"--strategy", "random"}, "RANDOM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"dev", "--nodes", "0", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0"}, tt.args...)
			p := start(t, append(tt.env, "KAFKA_HOST=192.0.2.1", "REDIS_HOST=192.0.2.1"), args...)
			server := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.await(t, " node\n"))
			var d client.Dispatcher
			if err := json.Unmarshal([]byte(want(t, 0, "strategy", "get", "-o", "json", "--server", server).out), &d); err != nil || d.Strategy != tt.want {
				t.Errorf("the strategy is %q, %v", d.Strategy, err)
			}
			p.signal(t, syscall.SIGTERM)
			if s := p.wait(t); s.ExitStatus() != 0 {
				t.Errorf("it ended with %v:\n%s", s, p.err)
			}
		})
	}
}
