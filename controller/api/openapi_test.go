package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

func document(t *testing.T) []byte {
	t.Helper()
	res := newFixture(t).do(t, http.MethodGet, "/api/openapi.json", "")
	if res.Code != http.StatusOK {
		t.Fatalf("status %d", res.Code)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, res.Body.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func TestOpenAPIDocumentIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	got := document(t)
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the OpenAPI document changed; if that is meant, run: go test ./controller/api -run Golden -update")
	}
}

type openAPI struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]openAPIOperation
	Components struct {
		Schemas         map[string]map[string]any
		SecuritySchemes map[string]any
	}
}

type openAPIOperation struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   map[string]any
	}
	RequestBody *struct {
		Content map[string]struct{ Example json.RawMessage }
	}
	Responses map[string]struct{ Description string }
	Security  []map[string]any
}

var pathParameter = regexp.MustCompile(`\{([^}]+)\}`)

// TestOpenAPIDocumentIsValid checks what the specification of OpenAPI 3.1 asks of the parts that we use.
func TestOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	raw := document(t)
	var doc openAPI
	var tree any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Info.Title == "" || doc.Info.Version == "" {
		t.Errorf("openapi %q, info %+v", doc.OpenAPI, doc.Info)
	}
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			name := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s: operationId %q is empty or used twice", name, op.OperationID)
			}
			ids[op.OperationID] = true
			checkParameters(t, name, path, op)
			if len(op.Responses) == 0 {
				t.Errorf("%s: no responses", name)
			}
			for code, response := range op.Responses {
				if response.Description == "" {
					t.Errorf("%s: response %s has no description", name, code)
				}
			}
			if op.RequestBody != nil && len(op.RequestBody.Content) == 0 {
				t.Errorf("%s: the body has no content", name)
			}
		}
	}
	walk(t, tree, tree, "#")
}

func checkParameters(t *testing.T, name, path string, op openAPIOperation) {
	t.Helper()
	var inPath []string
	for _, p := range op.Parameters {
		if p.In == "path" {
			inPath = append(inPath, p.Name)
			if !p.Required {
				t.Errorf("%s: path parameter %s is not required", name, p.Name)
			}
		}
		if p.Schema == nil {
			t.Errorf("%s: parameter %s has no schema", name, p.Name)
		}
	}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		if !slices.Contains(inPath, m[1]) {
			t.Errorf("%s: {%s} is not declared", name, m[1])
		}
	}
}

// walk checks that every $ref leads somewhere and every type is one of JSON Schema.
func walk(t *testing.T, root, node any, at string) {
	t.Helper()
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && lookUp(root, ref) == nil {
			t.Errorf("%s: $ref %s leads nowhere", at, ref)
		}
		if !strings.HasSuffix(at, "/properties") {
			checkType(t, node["type"], at)
		}
		for key, value := range node {
			walk(t, root, value, at+"/"+key)
		}
	case []any:
		for i, value := range node {
			walk(t, root, value, fmt.Sprint(at, "/", i))
		}
	}
}

func checkType(t *testing.T, value any, at string) {
	t.Helper()
	types := []string{"array", "boolean", "integer", "null", "number", "object", "string", "http"}
	switch value := value.(type) {
	case nil:
	case string:
		if !slices.Contains(types, value) {
			t.Errorf("%s: type %q", at, value)
		}
	case []any:
		for _, v := range value {
			checkType(t, v, at)
		}
	default:
		t.Errorf("%s: type %v", at, value)
	}
}

func lookUp(root any, ref string) any {
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		object, ok := root.(map[string]any)
		if !ok {
			return nil
		}
		root = object[part]
	}
	return root
}

func TestOpenAPIDocumentNamesEveryRoute(t *testing.T) {
	t.Parallel()
	var doc openAPI
	if err := json.Unmarshal(document(t), &doc); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"post /api/tasks", "post /api/tasks/batch", "get /api/tasks", "get /api/tasks/{id}", "put /api/tasks/{id}/status",
		"delete /api/tasks/{id}", "get /api/skalds", "get /api/skalds/{id}", "get /api/system/dispatcher", "put /api/system/dispatcher",
		"get /livez", "get /readyz", "get /metrics", "get /api/docs",
	} {
		method, path, _ := strings.Cut(want, " ")
		if _, ok := doc.Paths[path][method]; !ok {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestEachExampleIsAccepted sends each operation with a body the example that the documentation page fills in.
func TestEachExampleIsAccepted(t *testing.T) {
	t.Parallel()
	var doc openAPI
	if err := json.Unmarshal(document(t), &doc); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for path, operations := range doc.Paths {
		for method, op := range operations {
			if op.RequestBody == nil {
				continue
			}
			tried++
			f := newFixture(t)
			f.add(t, inState("x", task.Created))
			body := op.RequestBody.Content["application/json"].Example
			res := f.do(t, strings.ToUpper(method), pathParameter.ReplaceAllString(path, "x"), string(body))
			if len(body) == 0 || res.Code >= 300 {
				t.Errorf("%s %s with the example %s: %d %s", method, path, body, res.Code, res.Body)
			}
			if op.OperationID == "submit-batch" && !strings.Contains(res.Body.String(), `"status":201`) {
				t.Errorf("%s", res.Body)
			}
		}
	}
	if tried == 0 {
		t.Error("no operation has a body")
	}
}
