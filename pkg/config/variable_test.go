package config_test

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/config"
)

var exampleLine = regexp.MustCompile(`^#([A-Z][A-Z0-9_]*)=(.*)$`)

// exampleVariable is a variable as .env.example has it, with the comment above it.
type exampleVariable struct{ name, value, comment string }

// readExample returns the variables of .env.example but those that only
// docker-compose.yml reads, which test/compose looks at.
func readExample(t *testing.T) []exampleVariable {
	t.Helper()
	file, err := os.Open("../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var (
		all     []exampleVariable
		comment string
	)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		match := exampleLine.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "# --- docker compose only"):
			return all
		case match != nil:
			all = append(all, exampleVariable{match[1], match[2], comment})
			comment = ""
		case line == "" || strings.HasPrefix(line, "# ---"):
			comment = ""
		case strings.HasPrefix(line, "# "), line == "#":
			if comment != "" && len(all) > 0 {
				t.Errorf("more than one line of comment: %q", line)
			}
			comment = strings.TrimPrefix(line, "# ")
		default:
			t.Errorf("neither a comment nor #NAME=value: %q", line)
		}
	}
	t.Fatal("the section of docker compose is missing")
	return nil
}

func TestExampleFileAgreesWithTheStructs(t *testing.T) {
	t.Parallel()
	example := readExample(t)
	known := config.Variables()

	for _, v := range known {
		n := 0
		for _, e := range example {
			if e.name == v.Name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s stands %d times in .env.example, want once", v.Name, n)
		}
	}
	for _, e := range example {
		i := slices.IndexFunc(known, func(v config.Variable) bool { return v.Name == e.name })
		if i < 0 {
			t.Errorf("%s of .env.example is in no struct", e.name)
			continue
		}
		v := known[i]
		if e.value != v.Default {
			t.Errorf("%s is %q in .env.example and %q by default", e.name, e.value, v.Default)
		}
		if len(e.comment) < 15 {
			t.Errorf("%s has no explanation", e.name)
		}
		for what, part := range map[string]string{"range": v.Range, "variable it follows": v.Follows, "variable it stands for": v.Of} {
			if !strings.Contains(e.comment, part) {
				t.Errorf("the comment of %s does not name the %s, %s", e.name, what, part)
			}
		}
		if strings.HasSuffix(e.name, "_BYTES") && !strings.Contains(e.comment, "bytes") {
			t.Errorf("the comment of %s does not name its unit", e.name)
		}
		if v.Secret && !strings.HasPrefix(e.comment, "Secret") {
			t.Errorf("the comment of %s does not say that it is a secret", e.name)
		}
	}
}

// All of .env.example, with every # taken off, is the default configuration.
func TestExampleFileLoads(t *testing.T) {
	env := map[string]string{}
	for _, e := range readExample(t) {
		env[e.name] = e.value
	}
	setEnv(t, env)
	for name, load := range map[string]func() (any, error){
		"controller": loadController, "node": loadNode, "dev": loadDev, "client": loadClient,
	} {
		if _, err := load(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	processes := map[string][]string{}
	for _, v := range config.Variables() {
		if _, twice := processes[v.Name]; twice {
			t.Errorf("%s is listed twice", v.Name)
		}
		processes[v.Name] = v.Processes
	}
	for name, want := range map[string][]string{
		"LOG_LEVEL":                 {"controller", "node", "dev"},
		"API_TOKEN":                 {"controller", "client"},
		"API_TOKEN_FILE":            {"controller", "client"},
		"KAFKA_HOST":                {"controller", "node"},
		"MONITOR_HEARTBEAT_TIMEOUT": {"controller", "node", "dev"},
		"LEADER_LEASE":              {"controller", "dev"},
		"NODE_CAPACITY":             {"node", "dev"},
		"SYSTEM_CONTROLLER_PORT":    {"controller"},
		"MONGO_HOST":                {"controller"},
		"SKALD_ID":                  {"node"},
	} {
		if got := processes[name]; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
