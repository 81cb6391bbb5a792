package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/skalds-go/skalds/pkg/config"
)

// What a process of these tests is told.
const (
	holderDir      = "SKALDS_TEST_STATE_DIR"
	holderChild    = "SKALDS_TEST_STATE_CHILD"
	holderStopping = "SKALDS_TEST_STATE_STOPPING"
)

// TestStateHolder is no test: it is a process that holds a state file, with a child of its own if it is told to, until
// it is killed.
func TestStateHolder(t *testing.T) {
	dir := os.Getenv(holderDir)
	if dir == "" {
		t.Skip("runs as a process of the other tests")
	}
	s := openIn(t, dir)
	if _, proof := s.lock(); proof || !s.locked {
		t.Fatal("not locked, or a proof in a new file")
	}
	s.write("first", os.Getenv(holderStopping) != "")
	pid := 0
	if os.Getenv(holderChild) != "" {
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		pid = child.Process.Pid
	}
	if _, err := fmt.Fprintln(os.Stderr, pid); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// holder starts such a process and gives what kills it, and the pid of its child.
func holder(t *testing.T, dir string, env ...string) (kill func(), child int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStateHolder$")
	cmd.Env = append(append(os.Environ(), holderDir+"="+dir), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = in.Close()
			_ = cmd.Wait() // it was killed
		}
	}
	t.Cleanup(kill)
	if _, err := fmt.Fscan(bufio.NewReader(out), &child); err != nil {
		t.Fatal(err)
	}
	return kill, child
}

func inDir(dir string) *Config {
	return &Config{Node: &config.Node{ID: "n1", StateDir: dir}, Log: slog.New(slog.DiscardHandler)}
}

func openIn(t *testing.T, dir string) *lockFile {
	t.Helper()
	s, err := openLockFile(inDir(dir))
	if err != nil || s == nil {
		t.Fatalf("%v, %v", s, err)
	}
	t.Cleanup(s.close)
	return s
}

// The lock of a process that was killed proves that its incarnation is dead; and says whether that was a crash.
func TestAKilledProcessIsProvenDead(t *testing.T) {
	t.Parallel()
	for name, stopping := range map[string]bool{"a crash": false, "while it was told to stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "made", "if need be")
			var env []string
			if stopping {
				env = append(env, holderStopping+"=1")
			}
			kill, _ := holder(t, dir, env...)
			s := openIn(t, dir)
			if d, proof := s.lock(); proof || s.locked {
				t.Fatalf("proof of %q while it lives", d.incarnation)
			}
			s.write("second", false) // without the lock nothing is written
			kill()
			if d, proof := s.lock(); !proof || d != (dead{"first", !stopping}) {
				t.Errorf("%+v, %v", d, proof)
			}
			if _, proof := s.lock(); proof {
				t.Error("proven twice")
			}
		})
	}
}

// A child that outlives its parent holds the lock on, whatever it is: what it does for the task goes on.
func TestAChildHoldsTheLockOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kill, child := holder(t, dir, holderChild+"=1")
	kill()
	s := openIn(t, dir)
	if _, proof := s.lock(); proof || s.locked {
		t.Error("proven dead while its child lives")
	}
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for !s.locked { // the kernel closes its descriptors in its own time
		if d, proof := s.lock(); proof && d.incarnation != "first" {
			t.Errorf("%+v", d)
		}
	}
}

// What proves nothing: a file of an earlier boot, an empty one, one that was cut off, one that names nobody.
func TestWhatProvesNothing(t *testing.T) {
	t.Parallel()
	boot := openIn(t, t.TempDir()).file.Boot()
	if boot == "" {
		t.Fatal("the boot has no name")
	}
	for name, content := range map[string]string{
		"another boot": `{"incarnation":"first","boot":"another"}`, "no boot": `{"incarnation":"first"}`, "empty": ``,
		"cut off": `{"incarnation":"first","boot":"` + boot, "nobody": `{"boot":"` + boot + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "n1.lock"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			s := openIn(t, dir)
			if d, proof := s.lock(); proof || !s.locked {
				t.Errorf("%+v, locked %v", d, s.locked)
			}
		})
	}
}

// A filesystem that may be shared between machines, or is not known, proves nothing; a directory that cannot be made is
// an error.
func TestWhereNothingIsProven(t *testing.T) {
	t.Parallel()
	if _, err := openInheritable("/proc/self/comm"); !errors.Is(err, errNoProof) { // procfs is not in the list of local ones
		t.Errorf("%v", err)
	}
	for _, remote := range []int64{unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC} {
		if name, ok := localFilesystems[remote]; ok {
			t.Errorf("%#x counts as local: %s", remote, name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLockFile(inDir(filepath.Join(file, "dir"))); err == nil {
		t.Error("a directory inside a file is no error")
	}
	if s, err := openLockFile(inDir("")); s != nil || err != nil {
		t.Errorf("without a directory: %v, %v", s, err)
	}
}

// The descriptor is above those that a child may get for its own files, and is inherited.
func TestTheDescriptorIsInherited(t *testing.T) {
	t.Parallel()
	f, ok := openIn(t, t.TempDir()).file.(*inheritable)
	if !ok {
		t.Fatal("not a file")
	}
	flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 || f.fd < highDescriptor {
		t.Errorf("descriptor %d, flags %#x, %v", f.fd, flags, err)
	}
}
