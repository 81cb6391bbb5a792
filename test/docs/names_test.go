package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(?:Test|Benchmark)[A-Za-z0-9_]+`")
	// link finds the targets of links, without their place in the page.
	link = regexp.MustCompile(`\]\(([^)#\s]+)[^)\s]*\)`)
	// declared finds the tests of a file.
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Za-z0-9_]+)`)
)

// pages returns the text of every page, by its path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no page %s: %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimPrefix(filepath.ToSlash(path), root+"/")] = string(text)
		}
	}
	return found
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()

	for page, text := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
			}
		}
	}
}

func TestTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()

	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range pages(t) {
		for _, name := range testName.FindAllString(text, -1) {
			if !tests[strings.Trim(name, "`")] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}
