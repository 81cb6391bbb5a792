package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary builds the skalds binary once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "skalds-integration-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the binary: %w", err)
	}
	buildDir = dir
	path := filepath.Join(dir, "skalds")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/skalds").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
})

var buildDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// process is one skalds process.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{}
	err  error // how it ended; holds when done is closed
}

// syncBuffer keeps the last part of what a process prints.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const logLimit = 64 << 10

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	if extra := b.buf.Len() - logLimit; extra > 0 {
		b.buf.Next(extra)
	}
	return n, err
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs the binary with these variables, and nothing of this process' own environment that could change it.
func start(t *testing.T, name string, env map[string]string, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: name, cmd: exec.Command(path, args...), log: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Env = []string{"HOME=" + t.TempDir(), "LOG_LEVEL=info"}
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of what %s printed:\n%s", name, p.log)
		}
	})
	return p
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may be gone already
	<-p.done
}

// stop ends the process with SIGTERM and checks that it ends well in time.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.t.Fatalf("%s did not end within a minute of SIGTERM", p.name)
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		p.t.Errorf("%s ended with code %d\n%s", p.name, exit.ExitCode(), p.log)
	}
}

// freePort gives a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// hostPort sets NAME_HOST and NAME_PORT.
func hostPort(t *testing.T, env map[string]string, name, addr string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	env[name+"_HOST"], env[name+"_PORT"] = host, port
}
