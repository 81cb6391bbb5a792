// Package docs_test keeps the documentation true: it runs the commands of docs/getting-started.md, and compares
// docs/cases.md with the tests.
package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced code block of a page.
type block struct {
	line int    // of the opening fence, from 1
	lang string // such as "sh"
	info string // what follows the language, such as "running" or the name of a file
	text string // with a newline at the end
}

// blocks returns the fenced code blocks of a page in their order.
func blocks(page string) ([]block, error) {
	var found []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			lang, info, _ := strings.Cut(strings.TrimSpace(fence), " ")
			open = &block{line: i + 1, lang: lang, info: info}
		case isFence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the code block of line %d does not end", open.line)
	}
	return found, nil
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBlocksOfAPage(t *testing.T) {
	t.Parallel()

	got, err := blocks("a\n```sh running\nx\ny\n```\nb\n```go main.go\nz\n```\n")
	want := []block{{2, "sh", "running", "x\ny\n"}, {7, "go", "main.go", "z\n"}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("blocks = %+v, %v, want %+v", got, err, want)
	}
	if _, err := blocks("```sh\nx\n"); err == nil {
		t.Error("a block without an end is accepted")
	}
}
