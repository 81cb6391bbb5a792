// Package repo_test looks at the tracked files as text: nothing in them names one machine or a package registry's host.
package repo_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	// longFile is the number of lines from which a file of the program should be looked at: is it one thing?
	longFile = 400
)

// The patterns of what must not be in the repository. The words are broken up so that this file does not match itself.
var (
	machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9._/-])/` + `(work|farm|root|tmp|home/[a-z]+|Users/[A-Za-z]+)/[A-Za-z0-9._-]+`)

	registryHost = regexp.MustCompile(strings.Join([]string{
		`proxy\.` + `golang\.org`,
		`sum\.` + `golang\.org`,
		`registry\.` + `npmjs\.org`,
		`repo1?\.` + `maven\.(apache\.)?org`,
		`deb\.` + `debian\.org`,
		`(files|www)?\.?pypi` + `(\.org/simple|thonhosted\.org)`,
	}, "|"))
)

// inContainer matches the files whose paths are those of a container's file system and no machine's.
var inContainer = regexp.MustCompile(`(^|/)(Dockerfile|docker-compose\.yml)$|^test/compose/`)

func TestNoPathOfOneMachineAndNoRegistryHost(t *testing.T) {
	t.Parallel()

	for path, text := range tracked(t) {
		if filepath.Base(path) == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
			continue
		}

		for number, line := range strings.Split(string(text), "\n") {
			if found := private(path, line); found != "" {
				t.Errorf("%s:%d names %q", path, number+1, strings.TrimSpace(found))
			}
		}
	}
}

// private returns the part of the line that must not stand in that file, or "".
func private(path, line string) string {
	if found := registryHost.FindString(line); found != "" || inContainer.MatchString(path) {
		return found
	}

	return machinePath.FindString(line)
}

func TestPrivateMatches(t *testing.T) {
	t.Parallel()

	if found := private("deploy/Dockerfile", "RUN ls /roo"+"t/.cache"); found != "" {
		t.Errorf("a container's path is taken for a machine's: %q", found)
	}

	cases := map[string]bool{
		"cd /wor" + "k/main":                    true,
		`open("/tm` + `p/x.log")`:               true,
		"/hom" + "e/me/x":                       true,
		"GOPROXY=https://proxy.gol" + "ang.org": true,
		"https://repo.maven.apa" + "che.org/":   true,
		"network/root/key":                      false,
		"./work/main":                           false,
		"http://maven.apache.org/POM/4.0.0":     false,
		"/api/tasks":                            false,
		"/var/lib/skalds":                       false,
		"/home/nonroot":                         false,
	}
	for line, want := range cases {
		if got := private("a.go", line) != ""; got != want {
			t.Errorf("private(%q) = %v, want %v", line, got, want)
		}
	}
}

// TestLongFiles only tells: a long file is looked at, not forbidden.
func TestLongFiles(t *testing.T) {
	t.Parallel()

	for path, text := range tracked(t) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			continue
		}

		if lines := bytes.Count(text, []byte("\n")); lines > longFile {
			t.Logf("%s has %d lines", path, lines)
		}
	}
}

// tracked returns the text of every tracked file by its path from the root. Without git or its directory the test is
// skipped.
func tracked(t *testing.T) map[string][]byte {
	t.Helper()

	// Looked at here and not only by git, so that go test runs the test again when the list of tracked files changes.
	index := strings.TrimSpace(git(t, "rev-parse", "--path-format=absolute", "--git-path", "index"))
	if _, err := os.Stat(index); err != nil {
		t.Skipf("the repository has no index: %v", err)
	}

	files := map[string][]byte{}

	for path := range strings.SplitSeq(strings.TrimSuffix(git(t, "ls-files", "-z"), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the work tree
		}

		if err != nil {
			t.Fatal(err)
		}

		files[path] = text
	}

	return files
}

func git(t *testing.T, args ...string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = root

	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git %s: %v", strings.Join(args, " "), err)
	}

	return string(out)
}
