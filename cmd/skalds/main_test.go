package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/config"
)

// asProgram has the test binary be the program, so that tests can start it as a process of its own.
const asProgram = "SKALDS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	for _, v := range config.Variables() { // what the shell sets is not for the tests
		if err := os.Unsetenv(v.Name); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test. It is reached only by what would never come.
const patience = time.Minute

// answered is what one run of the program did.
type answered struct {
	code     int
	out, err string
}

// call runs the program in this process.
func call(t *testing.T, args ...string) answered { return callWith(t, "", args...) }

func callWith(t *testing.T, stdin string, args ...string) answered {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return answered{code, out.String(), errs.String()}
}

// want runs the program and fails the test unless it ends with this code.
func want(t *testing.T, code int, args ...string) answered {
	t.Helper()
	a := call(t, args...)
	if a.code != code {
		t.Fatalf("skalds %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), a.code, code, a.out, a.err)
	}
	return a
}

// decode reads the answer as JSON.
func decode[T any](t *testing.T, a answered) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.out), &v); err != nil {
		t.Fatalf("the answer is not what was asked for: %v\n%s%s", err, a.out, a.err)
	}
	return v
}

// buffer is a writer that can be read and waited for while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newBuffer() *buffer { return &buffer{more: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await returns when the text has been written, and gives everything.
func (b *buffer) await(t testing.TB, text string) string {
	t.Helper()
	over := time.After(patience)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.more:
		case <-over:
			t.Fatalf("%q was never written, only:\n%s", text, b.String())
		}
	}
	return b.String()
}

// devCluster is a running `skalds dev` on free ports.
type devCluster struct {
	server, kafkaPort, redisPort string
	banner                       string
	errs                         *buffer
	interrupt                    context.CancelFunc
	ended                        chan int
}

// startDev runs `skalds dev` in this process, and ends it with the test.
func startDev(t testing.TB, args ...string) *devCluster {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.WithoutCancel(t.Context()))
	out := newBuffer()
	d := &devCluster{errs: newBuffer(), interrupt: interrupt, ended: make(chan int, 1)}
	args = append([]string{"dev", "--kafka-port", "0", "--redis-port", "0", "--http-port", "0"}, args...)
	go func() { d.ended <- run(ctx, args, strings.NewReader(""), out, d.errs); close(d.ended) }()
	t.Cleanup(func() {
		interrupt()
		d.awaitEnd(t)
		if text := d.errs.String(); text != "" {
			t.Errorf("skalds dev wrote to standard error:\n%s", text)
		}
	})
	out.await(t, " node\n")
	d.banner = out.await(t, " nodes list")
	for line := range strings.SplitSeq(d.banner, "\n") {
		switch f := strings.Fields(line); {
		case len(f) >= 2 && f[0] == "API":
			d.server = f[1]
		case len(f) == 2 && f[0] == "Kafka":
			_, d.kafkaPort, _ = strings.Cut(f[1], ":")
		case len(f) == 2 && f[0] == "Redis":
			_, d.redisPort, _ = strings.Cut(f[1], ":")
		}
	}
	return d
}

// awaitEnd returns the exit code.
func (d *devCluster) awaitEnd(t testing.TB) int {
	t.Helper()
	select {
	case code := <-d.ended:
		return code
	case <-time.After(patience):
		t.Fatal("skalds dev does not end")
		return -1
	}
}

// reach is the environment of a process that joins.
func (d *devCluster) reach() []string {
	return []string{"KAFKA_PORT=" + d.kafkaPort, "REDIS_PORT=" + d.redisPort}
}

// program is the program as a process of its own.
type program struct {
	cmd      *exec.Cmd
	out, err *buffer
}

// start starts the program with nothing in its environment but env. It ends with the test.
func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...), out: newBuffer(), err: newBuffer()}
	p.cmd.Env = append([]string{asProgram + "=1"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.WaitDelay = patience
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wait returns how the process ended.
func (p *program) wait(t *testing.T) syscall.WaitStatus {
	t.Helper()
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// failingWriter takes nothing.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
