package docs_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tests of docs/cases.md anew")

const casesPage = "docs/cases.md"

var (
	// inName finds the number in the name of a test: TestC05_Name, TestIntegrationC30_Name.
	inName = regexp.MustCompile(`^Test(?:Integration)?(C\d{2}|S\d{1,2})(?:_|[A-Z]|$)`)
	// inText finds numbers in comments, and at the beginning of the names of subtests.
	inText = regexp.MustCompile(`\b(C\d{2}|S\d{1,2})\b`)
)

// carriers maps each number to the tests that carry it. A test is written as "dir.TestName", "dir: name of a subtest",
// or as the name of a file in which a comment has the number.
type carriers map[string][]string

func (c carriers) add(number, test string) {
	if !slices.Contains(c[number], test) {
		c[number] = append(c[number], test)
	}
}

// file adds the tests of a file. Comments count for numbers that nothing else in the file carries.
func (c carriers) file(path string, text []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	dir, here := filepath.ToSlash(filepath.Dir(path)), carriers{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if found := inName.FindStringSubmatch(n.Name.Name); found != nil {
				here.add(found[1], dir+"."+n.Name.Name)
			}
		case *ast.BasicLit:
			name, err := strconv.Unquote(n.Value)
			if err != nil || n.Kind != token.STRING {
				break
			}
			if at := inText.FindStringIndex(name); at != nil && at[0] == 0 && strings.Contains(name, " ") {
				here.add(name[:at[1]], dir+": "+name)
			}
		}
		return true
	})
	for _, group := range parsed.Comments {
		for _, number := range inText.FindAllString(group.Text(), -1) {
			if here[number] == nil {
				here[number] = []string{filepath.ToSlash(path)}
			}
		}
	}
	for number, tests := range here {
		for _, test := range tests {
			c.add(number, test)
		}
	}
	return nil
}

// ofModule returns what carries the numbers in the tests of the module.
func ofModule(t *testing.T) carriers {
	t.Helper()
	found := carriers{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || name == filepath.Join("test", "docs")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") && !(strings.HasSuffix(filepath.Dir(name), "test") && strings.HasSuffix(name, ".go")) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return found.file(name, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tests := range found {
		slices.Sort(tests)
	}
	return found
}

// caseRow is a line of the page: the cells before the tests, and the tests.
var caseRow = regexp.MustCompile(`(?m)^(\| ([CS]\d+) \|.*\|) ([^|]*)\|$`)

// cell writes tests as the page has them.
func cell(tests []string) string {
	if len(tests) == 0 {
		return ""
	}
	return "`" + strings.Join(tests, "`, `") + "` "
}

func TestEachCaseHasItsTestsAndEachNumberItsCase(t *testing.T) {
	t.Parallel()

	page, found := readPage(t, casesPage), ofModule(t)
	if *update {
		page = caseRow.ReplaceAllStringFunc(page, func(row string) string {
			m := caseRow.FindStringSubmatch(row)
			return m[1] + " " + cell(found[m[2]]) + "|"
		})
		if err := os.WriteFile(filepath.Join(root, casesPage), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listed := map[string]bool{}
	for _, row := range caseRow.FindAllStringSubmatch(page, -1) {
		number, tests := row[2], row[3]
		switch want := cell(found[number]); {
		case listed[number]:
			t.Errorf("%s has two rows for %s", casesPage, number)
		case want == "":
			t.Errorf("%s has a row for %s, which no test carries", casesPage, number)
		case tests != want:
			t.Errorf("%s: the tests of %s are %s, want %s; go test ./test/docs -update writes them", casesPage, number, tests, want)
		}
		listed[number] = true
	}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		if !listed[number] {
			t.Errorf("%s has no row for %s, which these carry: %s", casesPage, number, cell(found[number]))
		}
	}
}

func TestCarriersOfAFile(t *testing.T) {
	t.Parallel()

	got := carriers{}
	err := got.file("a/b_test.go", []byte(`package b
// C09 and S1: in a comment.
func TestC05_Name(t *testing.T) { run("S13 a subtest", "C44", "x C45 y") } // C05 again
func TestIntegrationC30_Name(t *testing.T) {}
func TestNothing(t *testing.T) { ok("S") }
`))
	want := map[string]string{
		"C05": "a.TestC05_Name", "C30": "a.TestIntegrationC30_Name", "S13": "a: S13 a subtest", "C09": "a/b_test.go", "S1": "a/b_test.go",
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("carriers = %v, %v, want %v", got, err, want)
	}
	for number, test := range want {
		if len(got[number]) != 1 || got[number][0] != test {
			t.Errorf("%s is carried by %q, want %q", number, got[number], test)
		}
	}
}
