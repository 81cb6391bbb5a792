// Package process builds the programs of this module and runs them as processes of a test.
//
// Invariants: a program is built once per test binary. A process gets none of the test's own environment, and ends with
// its test, however that ends (on Linux): only processes that were started here are signalled.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// builds holds what was built in this test binary.
var builds struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// Run is for a TestMain: it runs the tests and then removes what was built. It gives the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
	return code
}

// Build builds a main package of this module, such as "cmd/skalds", and gives the path of the program.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if path, done := builds.paths[pkg]; done {
		return path
	}
	path, err := build(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(pkg string) (string, error) {
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "skalds-build-")
		if err != nil {
			return "", fmt.Errorf("make a directory for programs: %w", err)
		}
		builds.dir, builds.paths = dir, map[string]string{}
	}
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(builds.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, "./"+pkg)
	cmd.Dir = filepath.Join(filepath.Dir(here), "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s (tests must be built without -trimpath): %w\n%s", pkg, err, out)
	}
	builds.paths[pkg] = path
	return path, nil
}
