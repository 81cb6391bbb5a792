// Package deps_test looks at what is linked into the binary: no library that only tests need. The import floors between
// our own packages are depguard's, in .golangci.yaml.
package deps_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root   = "../.."
	binary = "github.com/skalds-go/skalds/cmd/skalds"
)

// testOnly holds import path prefixes that must not be linked in, with a reason.
var testOnly = map[string]string{
	"pgregory.net/rapid":                 "property tests",
	"go.uber.org/goleak":                 "goroutine leak checks",
	"github.com/compose-spec/compose-go": "checks docker-compose.yml",
	"github.com/stretchr/testify":        "assertions",
	"github.com/skalds-go/skalds/test":   "services and checks for tests",
	"testing":                            "the test framework",
	"net/http/httptest":                  "servers for tests",
}

func TestBinaryLinksNothingForTests(t *testing.T) {
	t.Parallel()
	dependOnSources(t)

	for _, path := range linked(t, binary) {
		if why := forTests(path); why != "" {
			t.Errorf("%s links %s (%s); `go list -deps -f '{{.ImportPath}}: {{.Imports}}' ./cmd/skalds` shows who imports it", binary, path, why)
		}
	}
}

// TestFindsWhatIsForTests shows that the check above can fail: this package imports "testing".
func TestFindsWhatIsForTests(t *testing.T) {
	t.Parallel()

	cases := map[string]bool{
		"testing":            true,
		"testing/iotest":     true,
		"pgregory.net/rapid": true,
		"github.com/compose-spec/compose-go/v2/loader":    true,
		"github.com/skalds-go/skalds/test/services":       true,
		"github.com/skalds-go/skalds/pkg/store/storetest": true,
		"github.com/skalds-go/skalds/pkg/store":           false,
		"testingground":                                   false,
	}
	for path, want := range cases {
		if got := forTests(path) != ""; got != want {
			t.Errorf("forTests(%q) = %v, want %v", path, got, want)
		}
	}
}

// forTests returns why the package is for tests only, or "" when it is not. Of ours, a package named …test is.
func forTests(path string) string {
	for prefix, why := range testOnly {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return why
		}
	}

	if strings.HasPrefix(path, "github.com/skalds-go/skalds/") && strings.HasSuffix(path, "test") {
		return "a conformance suite or fake"
	}

	return ""
}

// linked lists the packages that a program is built from, with its own.
func linked(t *testing.T, program string) []string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", program)
	cmd.Dir = root

	var stderr strings.Builder

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", program, err, stderr.String())
	}

	return strings.Fields(string(out))
}

// dependOnSources reads every Go file that may be linked in, so that go test runs the test again when one changes: it
// sees the files that a test opens, and not those that a child process does.
func dependOnSources(t *testing.T) {
	t.Helper()

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"), entry.Name() == "go.mod":
			_, err := os.Stat(path)
			return err
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
