// Package compose_test checks docker-compose.yml, the Dockerfile and
// .dockerignore without a Docker engine: compose-go, the library that Docker
// Compose itself reads its files with, loads them.
package compose_test

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"

	"github.com/skalds-go/skalds/pkg/config"
)

// load reads docker-compose.yml as a fresh clone has it: without a .env, and
// with env as the only environment.
func load(t *testing.T, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root(t), "docker-compose.yml")}, cli.WithEnv(env))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// ours reports whether the service runs the image that this repository builds.
func ours(s types.ServiceConfig) bool { return s.Build != nil }

// processOf returns the process that a service of ours runs.
func processOf(s types.ServiceConfig) string {
	if len(s.Command) == 0 {
		return ""
	}
	return s.Command[0]
}

func TestServices(t *testing.T) {
	t.Parallel()
	project := load(t)
	if got, want := slices.Sorted(maps.Keys(project.Services)), []string{"controller", "kafka", "mongo", "node", "redis"}; !slices.Equal(got, want) {
		t.Errorf("services: got %v, want %v", got, want)
	}
	for name, s := range project.Services {
		if ours(s) && processOf(s) != name {
			t.Errorf("%s runs %v", name, s.Command)
		}
		if s.Restart == "" || s.Logging == nil || s.Logging.Driver != "local" {
			t.Errorf("%s: it must be started again when it ends, and its log must be bounded", name)
		}
	}
}

// notPassed are the variables that a service does not take from .env, with the reason.
var notPassed = map[string]string{
	"SYSTEM_CONTROLLER_HOST": "the published port needs it as it is",
	"SYSTEM_CONTROLLER_PORT": "the published port needs it as it is",
	"MONGO_HOST_FILE":        "MONGO_HOST has a value in docker-compose.yml, and only one of them may be set",
	"SKALD_ID":               "all nodes would share it",
}

// Every variable of .env.example reaches the processes that read it, and no others. That .env.example has every
// variable is a test of pkg/config.
func TestEveryVariableReachesItsProcesses(t *testing.T) {
	t.Parallel()
	const probe = "probe"
	var env []string
	known := map[string]config.Variable{}
	for _, v := range config.Variables() {
		known[v.Name] = v
		env = append(env, v.Name+"="+probe)
	}
	header, _, _ := strings.Cut(read(t, ".env.example"), "\n# ---")
	for name := range notPassed {
		if _, ok := known[name]; !ok || !strings.Contains(header, name) {
			t.Errorf("%s is no variable, or .env.example does not say that compose does not pass it on", name)
		}
	}
	for name, s := range load(t, env...).Services {
		if !ours(s) {
			continue
		}
		for _, v := range known {
			value := s.Environment[v.Name]
			switch wanted := slices.Contains(v.Processes, processOf(s)); {
			case !wanted && value != nil:
				t.Errorf("%s sets %s, which %s does not read", name, v.Name, processOf(s))
			case wanted && notPassed[v.Name] == "" && (value == nil || *value != probe):
				t.Errorf("%s does not pass %s on", name, v.Name)
			}
		}
		for variable := range s.Environment {
			if _, ok := known[variable]; !ok {
				t.Errorf("%s sets %s, which nobody reads", name, variable)
			}
		}
	}
}

// What a service of ours gets without a .env is a configuration that loads, and
// so is what it gets with a token, another strategy, or a .env.example that
// somebody took every # off.
func TestConfigurationsLoad(t *testing.T) {
	var defaults []string
	for _, v := range config.Variables() {
		if v.Default != "" && v.Name != "API_INSECURE" { // the compose file lets everybody in, on loopback
			defaults = append(defaults, v.Name+"="+v.Default)
		}
	}
	for name, tt := range map[string]struct {
		env   []string
		check func(*testing.T, config.Controller, config.Node)
	}{
		"fresh clone": {nil, func(t *testing.T, c config.Controller, n config.Node) {
			t.Helper()
			if !c.APIInsecure || c.Host != "0.0.0.0" || c.Mode != config.ModeDispatcher || c.Store != config.StoreMongo ||
				!strings.Contains(c.URI.Reveal(), "//mongo:") {
				t.Errorf("controller: %+v", c)
			}
			if !slices.Equal(c.Kafka.Addrs(), n.Kafka.Addrs()) || !slices.Equal(c.Redis.Addrs(), n.Redis.Addrs()) || c.Liveness != n.Liveness {
				t.Errorf("controller and node differ: %+v, %+v", c, n)
			}
			if !slices.Equal(n.Kafka.Addrs(), []string{"kafka:19092"}) || !slices.Equal(n.Redis.Addrs(), []string{"redis:6379"}) {
				t.Errorf("node: %+v", n)
			}
		}},
		"token": {[]string{"API_TOKEN=t", "API_INSECURE=false"}, func(t *testing.T, c config.Controller, _ config.Node) {
			t.Helper()
			if c.APIToken.Reveal() != "t" || c.APIInsecure {
				t.Errorf("controller: %+v", c)
			}
		}},
		"strategy": {[]string{"DISPATCHER_STRATEGY=ROUND_ROBIN"}, func(t *testing.T, c config.Controller, _ config.Node) {
			t.Helper()
			if c.DispatcherStrategy != "ROUND_ROBIN" {
				t.Errorf("controller: %+v", c)
			}
		}},
		"liveness": {[]string{"MONITOR_HEARTBEAT_TIMEOUT=20"}, func(t *testing.T, c config.Controller, n config.Node) {
			t.Helper()
			if c.LostAfter != 20*time.Second || n.LostAfter != 20*time.Second {
				t.Errorf("controller %v, node %v", c.LostAfter, n.LostAfter)
			}
		}},
		"every default": {defaults, func(*testing.T, config.Controller, config.Node) {}},
	} {
		t.Run(name, func(t *testing.T) {
			project := load(t, tt.env...)
			setEnv(t, project.Services["controller"].Environment)
			controller, err := config.LoadController()
			if err != nil {
				t.Fatal(err)
			}
			setEnv(t, project.Services["node"].Environment)
			node, err := config.LoadNode()
			if err != nil {
				t.Fatal(err)
			}
			tt.check(t, controller, node)
		})
	}
}

func setEnv(t *testing.T, env types.MappingWithEquals) {
	t.Helper()
	for _, v := range config.Variables() {
		t.Setenv(v.Name, "")
	}
	for name, value := range env {
		if value == nil {
			t.Fatalf("%s has no value: it would be taken from the shell", name)
		}
		t.Setenv(name, *value)
	}
}

var (
	pinned = regexp.MustCompile(`^[a-z0-9/_-]+:v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$`)
	insert = regexp.MustCompile(`^#([A-Z][A-Z0-9_]*)=(.*)$`)
)

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	project := load(t)
	for name, s := range project.Services {
		if !ours(s) && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %q has no full version", name, s.Image)
		}
	}
	if got := load(t, "KAFKA_IMAGE=apache/kafka:3.9.1").Services["kafka"].Image; got != "apache/kafka:3.9.1" {
		t.Errorf("KAFKA_IMAGE has no effect: %s", got)
	}
}

func TestPortsAreOnLoopback(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s publishes %d on %q", name, port.Target, port.HostIP)
			}
			if other, ok := taken[port.Published]; ok {
				t.Errorf("%s and %s publish %s", name, other, port.Published)
			}
			taken[port.Published] = name
		}
	}
	// Where a process on this machine looks by default.
	for port, name := range map[string]string{"8000": "controller", "9092": "kafka", "6379": "redis", "27017": "mongo"} {
		if taken[port] != name {
			t.Errorf("port %s is published by %q, want %s", port, taken[port], name)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	project := load(t)
	for name, s := range project.Services {
		if name == "node" { // it listens on no port
			continue
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 || s.HealthCheck.Disable {
			t.Errorf("%s has no health check", name)
			continue
		}
		if s.HealthCheck.Test[0] != "CMD" {
			t.Errorf("%s: the health check needs a shell: %v", name, s.HealthCheck.Test)
		}
	}
	if got, want := project.Services["controller"].HealthCheck.Test, []string{"CMD", "/skalds", "health"}; !slices.Equal(got, want) {
		t.Errorf("controller: the health check is %v, want %v", got, want)
	}
	for name, want := range map[string][]string{
		"controller": {"kafka", "mongo", "redis"},
		"node":       {"controller", "kafka", "redis"},
	} {
		depends := project.Services[name].DependsOn
		if got := slices.Sorted(maps.Keys(depends)); !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v", name, got, want)
		}
		for on, how := range depends {
			if how.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s waits for %s to be %s, want %s", name, on, how.Condition, types.ServiceConditionHealthy)
			}
		}
	}
}

// Nodes can be scaled: nothing of one stands in the way of another.
func TestNodesScale(t *testing.T) {
	t.Parallel()
	node := load(t).Services["node"]
	if node.GetScale() != 2 {
		t.Errorf("there are %d nodes, want 2", node.GetScale())
	}
	if node.ContainerName != "" || len(node.Ports) > 0 || len(node.Volumes) > 0 || node.Hostname != "" {
		t.Error("two nodes would share a name, a port or a volume")
	}
	if _, ok := node.Environment["SKALD_ID"]; ok {
		t.Error("two nodes would share their id")
	}
	grace, defaults := node.StopGracePeriod, config.DefaultNode()
	if drain := defaults.DrainSoft + defaults.DrainHard; grace == nil || time.Duration(*grace) <= drain {
		t.Errorf("a node is killed after %v, before its drain of %v has ended", grace, drain)
	}
	grace = load(t, "NODE_STOP_GRACE_PERIOD=5m").Services["node"].StopGracePeriod
	if grace == nil || time.Duration(*grace) != 5*time.Minute {
		t.Errorf("NODE_STOP_GRACE_PERIOD has no effect: a node is killed after %v", grace)
	}
}

// Nothing is read from outside the repository, and no file that a fresh clone
// does not have.
func TestNeedsNothingFromOutside(t *testing.T) {
	t.Parallel()
	project := load(t)
	used := map[string]bool{}
	for name, s := range project.Services {
		if len(s.EnvFiles) > 0 || len(s.Secrets) > 0 || len(s.Configs) > 0 || s.NetworkMode != "" || s.Extends != nil {
			t.Errorf("%s needs a file, a secret or a network that a clone does not have", name)
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeVolume || v.Source == "" {
				t.Errorf("%s mounts %q as %s, want a named volume", name, v.Source, v.Type)
			}
			used[v.Source] = true
		}
		if ours(s) && (s.Build.Context != root(t) || s.Build.Dockerfile != "Dockerfile" || len(s.Build.AdditionalContexts) > 0) {
			t.Errorf("%s is built from %s, %s", name, s.Build.Context, s.Build.Dockerfile)
		}
	}
	for name, v := range project.Volumes {
		if !used[name] || bool(v.External) {
			t.Errorf("the volume %s is used by nobody or comes from outside", name)
		}
	}
	for name, n := range project.Networks {
		if bool(n.External) {
			t.Errorf("the network %s comes from outside", name)
		}
	}
}

// Every ${NAME} has a default, so that a fresh clone starts, and stands in
// .env.example: as a variable of ours or in the section for docker compose.
func TestInsertions(t *testing.T) {
	t.Parallel()
	content := read(t, "docker-compose.yml")
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(content), &parsed); err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(read(t, ".env.example"), "# --- docker compose only")
	if !found {
		t.Fatal(".env.example has no section for docker compose")
	}
	composeOnly := map[string]string{}
	for line := range strings.Lines(section) {
		if m := insert.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			composeOnly[m[1]] = m[2]
		}
	}

	inserted := template.ExtractVariables(parsed, template.DefaultPattern)
	for name, v := range inserted {
		if v.Required || !strings.Contains(content, "${"+name+":-") {
			t.Errorf("${%s} has no default", name)
		}
		known := slices.ContainsFunc(config.Variables(), func(k config.Variable) bool { return k.Name == name })
		if fallback, ok := composeOnly[name]; !known && (!ok || fallback != v.DefaultValue) {
			t.Errorf("${%s} is %q by default; .env.example has %q for it", name, v.DefaultValue, fallback)
		}
	}
	for name := range composeOnly {
		if _, ok := inserted[name]; !ok {
			t.Errorf("%s of .env.example is inserted nowhere", name)
		}
	}
	if token := inserted["API_TOKEN"]; token.DefaultValue != "" {
		t.Errorf("there is a secret in docker-compose.yml: %q", token.DefaultValue)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
