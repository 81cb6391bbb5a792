package services

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// logTailBytes bounds how much of each log a failed test prints.
const logTailBytes = 4 << 10

// kind says which service a script is asked for.
type kind struct {
	script  string // file name beside this one
	variant string // the script's last argument; empty for its default
}

// Service is one running service. Its methods are for one goroutine.
type Service struct {
	kind     kind
	dir      string
	addr     string
	watchdog *exec.Cmd
	alive    io.Closer // write end of the watchdog's standard input
}

// launch starts a service in a directory of its own, watched by a child that stops it when this process is gone.
func launch(k kind) (*Service, error) {
	dir, err := os.MkdirTemp("", "skalds-"+strings.TrimSuffix(k.script, ".sh")+"-")
	if err != nil {
		return nil, fmt.Errorf("directory for %s: %w", k.script, err)
	}

	s := &Service{kind: k, dir: dir}
	if err := s.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.close())
	}

	addr, err := os.ReadFile(filepath.Join(dir, "addr"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("address of %s: %w", k.script, err), s.close())
	}

	s.addr = strings.TrimSpace(string(addr))

	return s, nil
}

// Addr returns the service's host:port. It stays the same over Stop, Kill and Start.
func (s *Service) Addr() string { return s.addr }

// PID returns the process id of the service, for signals that the methods here do not send. It fails the test when it
// is down.
func (s *Service) PID(t testing.TB) int {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err != nil {
		t.Fatalf("%s does not run: %v", s.kind.script, err)
	}

	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("process id of %s: %v", s.kind.script, err)
	}

	return pid
}

// Start starts the service again after Stop or Kill and returns when it answers. It does nothing when the service runs.
func (s *Service) Start(t testing.TB) {
	t.Helper()

	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the service as an operator would, and returns when its process is gone.
func (s *Service) Stop(t testing.TB) {
	t.Helper()

	if err := s.run("stop", s.dir); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the service with SIGKILL, and returns when its process is gone. What it had written stays.
func (s *Service) Kill(t testing.TB) {
	t.Helper()

	if err := s.run("kill", s.dir); err != nil {
		t.Fatal(err)
	}
}

// Empty removes what the service has kept, which must be stopped: it starts as a new one, at the same address.
func (s *Service) Empty(t testing.TB) {
	t.Helper()

	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
}

func (s *Service) start() error { return s.run("start", s.dir, "0", s.kind.variant) }

// run calls the service's script. The script bounds its own time.
func (s *Service) run(args ...string) error {
	path, err := scriptPath(s.kind.script)
	if err != nil {
		return err
	}

	out, err := exec.Command("bash", append([]string{path}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", s.kind.script, strings.Join(args, " "), err, out)
	}

	return nil
}

// watch starts the child that waits for the end of its standard input, which also a crash of this process brings, and
// then stops the service. It ignores the signals that a terminal sends to the whole process group.
func (s *Service) watch() error {
	path, err := scriptPath(s.kind.script)
	if err != nil {
		return err
	}

	s.watchdog = exec.Command("bash", "-c", `trap "" INT TERM HUP; cat >/dev/null; exec bash "$0" stop "$1"`, path, s.dir)

	s.alive, err = s.watchdog.StdinPipe()
	if err != nil {
		return fmt.Errorf("watchdog of %s: %w", s.kind.script, err)
	}

	if err := s.watchdog.Start(); err != nil {
		return fmt.Errorf("watchdog of %s: %w", s.kind.script, err)
	}

	return nil
}

// close stops the service through its watchdog and removes its directory, and with that gives its ports back.
func (s *Service) close() error {
	err := s.alive.Close()
	if err == nil {
		err = s.watchdog.Wait()
	}

	if err != nil {
		return fmt.Errorf("%s did not stop, see %s: %w", s.kind.script, s.dir, err)
	}

	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("directory of %s: %w", s.kind.script, err)
	}

	return nil
}

// logTail returns the end of each of the service's logs.
func (s *Service) logTail() string {
	paths, _ := filepath.Glob(filepath.Join(s.dir, "*.log")) // the pattern is well formed

	var tail strings.Builder

	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 {
			continue
		}

		fmt.Fprintf(&tail, "== end of %s\n%s\n", filepath.Base(path), text[max(0, len(text)-logTailBytes):])
	}

	return tail.String()
}

// scriptPath returns the path of a file beside this one.
func scriptPath(name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), name)

	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("service script (tests must be built without -trimpath): %w", err)
	}

	return path, nil
}
