package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns is the width at which comments and prose wrap.
	maxColumns = 120
	// maxMethods is the number of methods of a type from which on it does more than one thing.
	maxMethods = 35
	// maxWiring is the number of lines of package controller, which only wires its parts.
	maxWiring = 300
)

// linkTarget matches what a link of Markdown points at, which cannot wrap.
var linkTarget = regexp.MustCompile(`\]\([^)]*\)`)

// wide returns the numbers of the lines of comments (Go) or prose (Markdown) that are wider than maxColumns. Tables,
// code, directives, the output of examples and the targets of links cannot wrap.
func wide(name, text string) []int {
	var numbers []int
	inCode := false
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		trimmed := strings.TrimSpace(line)
		switch path.Ext(name) {
		case ".go":
			if !strings.HasPrefix(trimmed, "//") {
				inCode = false
				continue
			}
			inCode = inCode || trimmed == "// Output:"
			if inCode || !strings.HasPrefix(trimmed, "// ") {
				continue
			}
		case ".md":
			if strings.HasPrefix(trimmed, "```") {
				inCode = !inCode
				continue
			}
			if inCode || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(line, "    ") {
				continue
			}
			line = linkTarget.ReplaceAllString(line, "]")
		default:
			return nil
		}
		if utf8.RuneCountInString(line) > maxColumns && strings.Contains(trimmed, " ") && !strings.Contains(line, "://") {
			numbers = append(numbers, number+1)
		}
	}
	return numbers
}

func TestWide(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	for name, tt := range map[string]struct {
		file, text string
		want       int
	}{
		"comment":       {"a.go", "package a\n\n\t// " + long, 1},
		"short comment": {"a.go", "// short", 0},
		"code":          {"a.go", `const a = "` + long + `"`, 0},
		"output":        {"a.go", "\t// Output:\n\t// " + long + "\n}\n\n// " + long, 1},
		"directive":     {"a.go", "//nolint:x " + long, 0},
		"address":       {"a.go", "// https://example.org/" + strings.Repeat("x", 120) + " has it", 0},
		"prose":         {"a.md", long, 1},
		"table":         {"a.md", "| " + long, 0},
		"block":         {"a.md", "```\n" + long + "\n```\n" + long, 1},
		"indented":      {"a.md", "    " + long, 0},
		"link":          {"a.md", "see [this](" + strings.Repeat("x", 120) + ") page", 0},
		"other":         {"a.sh", long, 0},
	} {
		if got := len(wide(tt.file, tt.text)); got != tt.want {
			t.Errorf("%s: %d lines are wide, want %d", name, got, tt.want)
		}
	}
}

func TestCommentsAndProseWrap(t *testing.T) {
	t.Parallel()
	for file, text := range tracked(t) {
		numbers := wide(file, string(text))
		if len(numbers) > 0 {
			t.Errorf("%s has lines of more than %d columns: %v", file, maxColumns, numbers)
		}
	}
}

// wideTypes are the types that may have more methods, and how many.
var wideTypes = map[string]int{
	// One method for each operation of the API or of the interface that they implement.
	"pkg/client.Client":      40,
	"pkg/store/mongo.Store":  40,
	"pkg/store/sqlite.Store": 50,
}

// TestNoTypeDoesEverything counts the methods of each type of the program.
func TestNoTypeDoesEverything(t *testing.T) {
	t.Parallel()
	methods := map[string]int{}
	for file, text := range tracked(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[path.Dir(file)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	if len(methods) < 50 {
		t.Fatalf("only %d types have methods: the test looks at the wrong files", len(methods))
	}
	for name, n := range methods {
		if most := max(maxMethods, wideTypes[name]); n > most {
			t.Errorf("%s has %d methods, want at most %d: cut it by what it knows", name, n, most)
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// TestControllerOnlyWires counts the lines of package controller.
func TestControllerOnlyWires(t *testing.T) {
	t.Parallel()
	lines := 0
	for file, text := range tracked(t) {
		if path.Dir(file) == "controller" && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			lines += strings.Count(string(text), "\n")
		}
	}
	if lines == 0 || lines >= maxWiring {
		t.Errorf("package controller has %d lines, want less than %d: it is wiring only", lines, maxWiring)
	}
}
