package lockfile_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/lockfile"
)

// asHolder has the test binary hold the lock of the file that it names until its standard input ends.
const asHolder = "SKALDS_TEST_HOLD"

func TestMain(m *testing.M) {
	path := os.Getenv(asHolder)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := lockfile.Acquire(path); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func acquire(t *testing.T, path string) *lockfile.Lock {
	t.Helper()
	l, err := lockfile.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func refused(t *testing.T, path string, pid int) {
	t.Helper()
	_, err := lockfile.Acquire(path)
	if !errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(pid)) {
		t.Errorf("error %v", err)
	}
}

func TestOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l := acquire(t, path)
	for range 2 {
		refused(t, path, os.Getpid())
	}
	for range 2 {
		if err := l.Release(); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	l = acquire(t, path)
	defer func() { _ = l.Release() }()
	if other := acquire(t, path+"2"); other.Release() != nil {
		t.Error("the lock of another file is not free")
	}
}

// TestEndsWithItsProcess: a holder that is killed holds nothing.
func TestEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.Command(os.Args[0])
	holder.Env = []string{asHolder + "=" + path}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	refused(t, path, holder.Process.Pid)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	if acquire(t, path).Release() != nil {
		t.Error("not released")
	}
}

func TestNoPlaceForTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "no", "such", "lock")
	if _, err := lockfile.Acquire(path); err == nil || errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}
