package process

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// logLimit is how much of what a process prints is kept: the end of it.
	logLimit = 64 << 10
	// endedLimit is how much of it is shown of a process that ended before its test.
	endedLimit = 4 << 10
	// stopLimit is how long a process may take to end after SIGTERM.
	stopLimit = time.Minute
)

// Process is one run of a program.
type Process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{}
	err  error // how it ended; holds when done is closed
}

// Start runs a program with these variables. When the test failed, the end of what the program printed is logged.
func Start(t testing.TB, name, path string, env map[string]string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, name: name, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = []string{"HOME=" + t.TempDir(), "LOG_LEVEL=info"}
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	together(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		show := logLimit
		if !p.Running() {
			show = endedLimit
		}
		p.Kill()
		if text := p.Log(); t.Failed() {
			t.Logf("the end of what %s (pid %d) printed:\n%s", name, p.PID(), text[max(0, len(text)-show):])
		}
	})
	return p
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode is the code with which the process ended, -1 if it runs or was ended by a signal.
func (p *Process) ExitCode() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Log is the end of what it printed.
func (p *Process) Log() string { return p.log.String() }

// Kill ends the process with SIGKILL, frozen or not, and returns when it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Freeze stops the process where it is (SIGSTOP), and Thaw lets it go on.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

// Terminate asks the process to end (SIGTERM) and does not wait.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Stop ends the process with SIGTERM. The test fails if it does not end within a minute, or not well.
func (p *Process) Stop() {
	p.t.Helper()
	p.Terminate()
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		p.t.Fatalf("%s did not end within %s of SIGTERM", p.name, stopLimit)
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		p.t.Errorf("%s ended with code %d\n%s", p.name, exit.ExitCode(), p.Log())
	}
}

// signal sends a signal. The process may be gone already.
func (p *Process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// tail keeps the last part of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	if extra := b.buf.Len() - logLimit; extra > 0 {
		b.buf.Next(extra)
	}
	return n, err
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Ports that FreePort gives: below those that Linux takes for the near end of connections, so that a process that is
// started again finds its port free, and below those of the services.
const lowestPort, highestPort = 10_000, 19_999

// FreePort gives a port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free", lowestPort, highestPort)
	return 0
}
