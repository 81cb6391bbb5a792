package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/config"
)

// setEnv makes env all that a Load function sees. It uses t.Setenv, so that the
// tests of Load functions are not parallel.
func setEnv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, v := range config.Variables() {
		t.Setenv(v.Name, "") // empty is not set, see TestEmptyIsNotSet
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// problems returns what err reports, by variable.
func problems(t *testing.T, err error) map[string]config.Problem {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is a %T, want a *config.Error: %v", err, err)
	}
	found := map[string]config.Problem{}
	for _, p := range e.Problems {
		found[p.Variable] = p
	}
	return found
}

func loadController() (any, error) { return config.LoadController() }
func loadNode() (any, error)       { return config.LoadNode() }
func loadDev() (any, error)        { return config.LoadDev() }
func loadClient() (any, error)     { return config.LoadClient() }

func TestDefaults(t *testing.T) {
	setEnv(t, nil)

	controller, err := config.LoadController()
	if err != nil {
		t.Fatal(err)
	}
	kafka := config.Kafka{
		Host: "127.0.0.1", Port: 9092, TopicPartitions: 6, ReplicationFactor: 1, EventMaxBytes: 900 << 10,
	}
	redis := config.Redis{Host: "127.0.0.1", Port: 6379}
	liveness := config.Liveness{HeartbeatInterval: time.Second, LostAfter: 8 * time.Second, StopMargin: time.Second}
	wantController := config.Controller{
		Log: config.Log{Level: config.LogInfo}, Mode: config.ModeDispatcher, Host: "127.0.0.1", Port: 8000,
		Kafka: kafka, Redis: redis, Mongo: config.Mongo{URI: "mongodb://127.0.0.1:27017", Database: "skalds"},
		SQLite: config.SQLite{Path: "skalds.db", Sync: config.SQLiteSyncFull},
		Store:  config.StoreMongo, TaskMaxBytes: 256 << 10, TaskRetention: 7 * 24 * time.Hour,
		DispatcherInterval: 5 * time.Second, DispatcherStrategy: "LEAST_TASKS",
		DispatcherPriorityMode: config.PriorityStrict, PriorityAging: time.Minute, DispatcherMaxPending: 1000,
		AssignResendAfter: 2 * time.Second, LeaderLease: 2 * time.Second, Liveness: liveness,
		Retry:                config.Retry{MaxAttempts: 3, MaxCrashes: 3, BackoffBase: time.Second, BackoffFactor: 2, BackoffMax: 5 * time.Minute},
		CancelGrace:          10 * time.Second,
		MonitorSkaldInterval: time.Second, MonitorTaskInterval: 5 * time.Second,
	}
	if !reflect.DeepEqual(controller, wantController) {
		t.Errorf("controller:\n got %+v\nwant %+v", controller, wantController)
	}

	node, err := config.LoadNode()
	if err != nil {
		t.Fatal(err)
	}
	wantNode := config.Node{
		Log: config.Log{Level: config.LogInfo}, ID: node.ID, Mode: config.NodeModeNode, Capacity: 16, Prefetch: 64,
		Kafka: kafka, Redis: redis, Liveness: liveness, ResultMaxBytes: 256 << 10,
		DrainSoft: 30 * time.Second, DrainHard: 10 * time.Second, CancelGrace: 10 * time.Second,
	}
	if !reflect.DeepEqual(node, wantNode) {
		t.Errorf("node:\n got %+v\nwant %+v", node, wantNode)
	}

	client, err := config.LoadClient()
	if want := (config.Client{Server: "http://127.0.0.1:8000"}); err != nil || client != want {
		t.Errorf("client: got %+v, %v, want %+v", client, err, want)
	}
	dev, err := config.LoadDev()
	if err != nil {
		t.Fatal(err)
	}
	wantNode.ID, wantNode.Level, wantNode.DrainSoft, wantNode.DrainHard = "", config.LogWarn, 4*time.Second, time.Second
	wantController.Level = config.LogWarn
	if want := (config.Dev{Controller: wantController, Node: wantNode}); !reflect.DeepEqual(dev, want) {
		t.Errorf("dev:\n got %+v\nwant %+v", dev, want)
	}
}

func TestEmptyIsNotSet(t *testing.T) {
	setEnv(t, nil) // sets every variable to the empty string
	withEmpty, err := config.LoadController()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range config.Variables() {
		if err := os.Unsetenv(v.Name); err != nil { // t.Setenv puts it back
			t.Fatal(err)
		}
	}
	unset, err := config.LoadController()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(withEmpty, unset) {
		t.Errorf("empty: %+v\nunset: %+v", withEmpty, unset)
	}
}

func TestValues(t *testing.T) {
	controller := func(get func(config.Controller) any) func() (any, error) {
		return func() (any, error) {
			c, err := config.LoadController()
			return get(c), err
		}
	}
	node := func(get func(config.Node) any) func() (any, error) {
		return func() (any, error) {
			n, err := config.LoadNode()
			return get(n), err
		}
	}
	tests := map[string]struct {
		env  map[string]string
		load func() (any, error)
		want any
	}{
		"seconds":            {map[string]string{"DISPATCHER_INTERVAL": "5"}, controller(func(c config.Controller) any { return c.DispatcherInterval }), 5 * time.Second},
		"parts of a second":  {map[string]string{"DISPATCHER_INTERVAL": "0.25"}, controller(func(c config.Controller) any { return c.DispatcherInterval }), 250 * time.Millisecond},
		"with a unit":        {map[string]string{"DISPATCHER_INTERVAL": "500ms"}, controller(func(c config.Controller) any { return c.DispatcherInterval }), 500 * time.Millisecond},
		"word in lower case": {map[string]string{"SYSTEM_CONTROLLER_MODE": "monitor"}, controller(func(c config.Controller) any { return c.Mode }), config.ModeMonitor},
		"store in a file":    {map[string]string{"STORE": "SQLite"}, controller(func(c config.Controller) any { return c.Store }), config.StoreSQLite},
		"file of the store":  {map[string]string{"SQLITE_PATH": "/data/a b.db"}, controller(func(c config.Controller) any { return c.Path }), "/data/a b.db"},
		"no sync":            {map[string]string{"SQLITE_SYNC": "Normal"}, controller(func(c config.Controller) any { return c.Sync }), config.SQLiteSyncNormal},
		"word in upper case": {map[string]string{"STORE": "MEMORY"}, controller(func(c config.Controller) any { return c.Store }), config.StoreMemory},
		"strategy":           {map[string]string{"DISPATCHER_STRATEGY": "IDLE|SPREAD:zone"}, controller(func(c config.Controller) any { return c.DispatcherStrategy }), "IDLE|SPREAD:zone"},
		"log level's alias":  {map[string]string{"LOG_LEVEL": "WARNING"}, controller(func(c config.Controller) any { return c.Level }), config.LogWarn},
		"true":               {map[string]string{"KAFKA_TLS": "True"}, controller(func(c config.Controller) any { return c.Kafka.TLS }), true},
		"free port":          {map[string]string{"SYSTEM_CONTROLLER_PORT": "0"}, controller(func(c config.Controller) any { return c.ListenAddr() }), "127.0.0.1:0"},
		"alias":              {map[string]string{"MONITOR_HEARTBEAT_TIMEOUT": "20"}, controller(func(c config.Controller) any { return c.LostAfter }), 20 * time.Second},
		"alias on a node":    {map[string]string{"MONITOR_HEARTBEAT_TIMEOUT": "20"}, node(func(n config.Node) any { return n.LostAfter }), 20 * time.Second},
		"alias that agrees":  {map[string]string{"NODE_LOST_AFTER": "9s", "MONITOR_HEARTBEAT_TIMEOUT": "9s"}, node(func(n config.Node) any { return n.LostAfter }), 9 * time.Second},
		"follows":            {map[string]string{"NODE_HEARTBEAT_INTERVAL": "250ms"}, controller(func(c config.Controller) any { return c.MonitorSkaldInterval }), 250 * time.Millisecond},
		"follows no longer":  {map[string]string{"NODE_HEARTBEAT_INTERVAL": "250ms", "MONITOR_SKALD_INTERVAL": "2"}, controller(func(c config.Controller) any { return c.MonitorSkaldInterval }), 2 * time.Second},
		"prefetch follows":   {map[string]string{"NODE_CAPACITY": "3"}, node(func(n config.Node) any { return n.Prefetch }), 12},
		"no further":         {map[string]string{"NODE_CAPACITY": "90000"}, node(func(n config.Node) any { return n.Prefetch }), 100_000},
		"no prefetch":        {map[string]string{"NODE_PREFETCH": "0"}, node(func(n config.Node) any { return n.Prefetch }), 0},
		"no soft drain":      {map[string]string{"DRAIN_SOFT": "0"}, node(func(n config.Node) any { return n.DrainSoft }), time.Duration(0)},
		"id":                 {map[string]string{"SKALD_ID": "edge_7.a-b"}, node(func(n config.Node) any { return n.ID }), "edge_7.a-b"},
		"labels":             {map[string]string{"NODE_LABELS": "zone=a, gpu=true,example.org/empty="}, node(func(n config.Node) any { return n.Labels }), config.Labels{"zone": "a", "gpu": "true", "example.org/empty": ""}},
		"one broker":         {map[string]string{"KAFKA_HOST": "::1", "KAFKA_PORT": "19092"}, node(func(n config.Node) any { return n.Kafka.Addrs() }), []string{"[::1]:19092"}},
		"brokers":            {map[string]string{"KAFKA_HOST": "k0", "KAFKA_BROKERS": "k1:1, k2:2"}, node(func(n config.Node) any { return slices.Clone(n.Kafka.Addrs()) }), []string{"k1:1", "k2:2"}},
		"one redis":          {map[string]string{"REDIS_HOST": "r", "REDIS_PORT": "1"}, node(func(n config.Node) any { return n.Redis.Addrs() }), []string{"r:1"}},
		"redis cluster":      {map[string]string{"REDIS_CLUSTER_ADDRS": "r1:1,r2:2"}, node(func(n config.Node) any { return slices.Clone(n.Redis.Addrs()) }), []string{"r1:1", "r2:2"}},
		"redis sentinels":    {map[string]string{"REDIS_SENTINEL_ADDRS": "s1:1", "REDIS_SENTINEL_MASTER": "m"}, node(func(n config.Node) any { return slices.Clone(n.Redis.Addrs()) }), []string{"s1:1"}},
		"no sasl":            {nil, node(func(n config.Node) any { return n.Mechanism() }), config.SASLNone},
		"sasl plain":         {map[string]string{"KAFKA_USERNAME": "u", "KAFKA_PASSWORD": "p"}, node(func(n config.Node) any { return n.Mechanism() }), config.SASLPlain},
		"sasl scram":         {map[string]string{"KAFKA_USERNAME": "u", "KAFKA_PASSWORD": "p", "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512"}, node(func(n config.Node) any { return n.Mechanism() }), config.SASLScramSHA512},
		"api beyond":         {map[string]string{"SYSTEM_CONTROLLER_HOST": "0.0.0.0", "API_TOKEN": "t"}, controller(func(c config.Controller) any { return c.APIToken.Reveal() }), "t"},
		"api insecure":       {map[string]string{"SYSTEM_CONTROLLER_HOST": "0.0.0.0", "API_INSECURE": "true"}, controller(func(c config.Controller) any { return c.Host }), "0.0.0.0"},
		"api on ipv6":        {map[string]string{"SYSTEM_CONTROLLER_HOST": "::1"}, controller(func(c config.Controller) any { return c.ListenAddr() }), "[::1]:8000"},
		"largest attachments": {
			map[string]string{"TASK_MAX_BYTES": "262144", "EVENT_MAX_BYTES": "327680"},
			controller(func(c config.Controller) any { return c.TaskMaxBytes }), 262144,
		},
		"longest heartbeat": {
			map[string]string{"NODE_HEARTBEAT_INTERVAL": "3", "NODE_LOST_AFTER": "10"},
			node(func(n config.Node) any { return n.HeartbeatInterval }), 3 * time.Second,
		},
		"fast failover": {
			map[string]string{"NODE_HEARTBEAT_INTERVAL": "250ms", "NODE_LOST_AFTER": "2", "NODE_STOP_MARGIN": "250ms"},
			node(func(n config.Node) any { return n.Liveness }),
			config.Liveness{HeartbeatInterval: 250 * time.Millisecond, LostAfter: 2 * time.Second, StopMargin: 250 * time.Millisecond},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			setEnv(t, tt.env)
			got, err := tt.load()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	type env = map[string]string
	tests := map[string]struct {
		load func() (any, error)
		env  env
		want map[string]string // variable -> part of the problem's line
	}{
		"no number":           {loadController, env{"KAFKA_PORT": "abc"}, env{"KAFKA_PORT": `is "abc", want a whole number from 1 to 65535`}},
		"octal":               {loadNode, env{"NODE_CAPACITY": "010"}, env{"NODE_CAPACITY": "a whole number"}},
		"number out of range": {loadController, env{"KAFKA_TOPIC_PARTITIONS": "10001"}, env{"KAFKA_TOPIC_PARTITIONS": `"10001", want a whole number from 1 to 10000`}},
		"number overflows":    {loadController, env{"REDIS_PORT": "99999999999999999999"}, env{"REDIS_PORT": "from 1 to 65535"}},
		"capacity 0":          {loadNode, env{"NODE_CAPACITY": "0"}, env{"NODE_CAPACITY": "from 1 to 100000"}},
		"negative prefetch":   {loadNode, env{"NODE_PREFETCH": "-1"}, env{"NODE_PREFETCH": "from 0 to 100000"}},
		"follower not blamed": {loadNode, env{"NODE_CAPACITY": "100001"}, env{"NODE_CAPACITY": "from 1 to 100000"}},
		"no duration":         {loadController, env{"DISPATCHER_INTERVAL": "1h30"}, env{"DISPATCHER_INTERVAL": `"1h30", want a length of time from 10ms to 1h`}},
		"duration 0":          {loadController, env{"DISPATCHER_INTERVAL": "0"}, env{"DISPATCHER_INTERVAL": `"0", want a length of time from 10ms to 1h`}},
		"negative duration":   {loadNode, env{"DRAIN_SOFT": "-5"}, env{"DRAIN_SOFT": `is "-5"`}},
		"lease too short":     {loadController, env{"LEADER_LEASE": "499ms"}, env{"LEADER_LEASE": "from 500ms"}},
		"no boolean":          {loadController, env{"API_INSECURE": "yes"}, env{"API_INSECURE": `is "yes", want true or false`}},
		"no word of the list": {loadController, env{"SYSTEM_CONTROLLER_MODE": "worker"}, env{"SYSTEM_CONTROLLER_MODE": `is "worker", want one of CONTROLLER, MONITOR, DISPATCHER`}},
		"sync":                {loadController, env{"SQLITE_SYNC": "off"}, env{"SQLITE_SYNC": `is "off", want one of full, normal`}},
		"edge":                {loadNode, env{"SKALD_MODE": "edge"}, env{"SKALD_MODE": `is "edge", want node: the modes edge and single_process do not exist yet`}},
		"single process":      {loadNode, env{"SKALD_MODE": "single_process"}, env{"SKALD_MODE": "do not exist yet"}},
		"log level":           {loadDev, env{"LOG_LEVEL": "chatty"}, env{"LOG_LEVEL": "one of debug, info, warn, error"}},
		"host with port":      {loadNode, env{"REDIS_HOST": "redis:6379"}, env{"REDIS_HOST": "without a port"}},
		"broker without port": {loadNode, env{"KAFKA_BROKERS": "k1:9092,k2"}, env{"KAFKA_BROKERS": `("k2" is not one)`}},
		"empty broker":        {loadNode, env{"KAFKA_BROKERS": "k1:9092,"}, env{"KAFKA_BROKERS": `("" is not one)`}},
		"101 brokers":         {loadNode, env{"KAFKA_BROKERS": strings.Repeat("k:1,", 100) + "k:1"}, env{"KAFKA_BROKERS": "at most 100"}},
		"no mongo uri":        {loadController, env{"MONGO_HOST": "127.0.0.1:27017"}, env{"MONGO_HOST": `"127.0.0.1:27017", want a URI`}},
		"database":            {loadController, env{"DB_NAME": "a/b"}, env{"DB_NAME": `"a/b"`}},
		"id":                  {loadNode, env{"SKALD_ID": "a b"}, env{"SKALD_ID": "1 to 128 characters"}},
		"id too long":         {loadNode, env{"SKALD_ID": strings.Repeat("a", 129)}, env{"SKALD_ID": "1 to 128 characters"}},
		"id with a brace":     {loadNode, env{"SKALD_ID": "a}b"}, env{"SKALD_ID": "1 to 128 characters"}},
		"label without value": {loadNode, env{"NODE_LABELS": "zone"}, env{"NODE_LABELS": `("zone" has no =)`}},
		"label twice":         {loadNode, env{"NODE_LABELS": "a=1,a=2"}, env{"NODE_LABELS": "twice"}},
		"server":              {loadClient, env{"SKALDS_SERVER": "localhost:8000"}, env{"SKALDS_SERVER": "a URL such as"}},
		"server with path":    {loadClient, env{"SKALDS_SERVER": "http://h?x=1"}, env{"SKALDS_SERVER": "without user, query"}},
		"token with a space":  {loadClient, env{"API_TOKEN": "two words"}, env{"API_TOKEN": `is "***", want at most 1000 visible`}},

		"api beyond loopback":       {loadController, env{"SYSTEM_CONTROLLER_HOST": "0.0.0.0"}, env{"API_TOKEN": "is not set, want a token, because SYSTEM_CONTROLLER_HOST (0.0.0.0)"}},
		"margin over lost":          {loadNode, env{"NODE_STOP_MARGIN": "8s"}, env{"NODE_STOP_MARGIN": "less than NODE_LOST_AFTER (8s)"}},
		"heartbeats do not fit":     {loadController, env{"NODE_HEARTBEAT_INTERVAL": "2334ms"}, env{"NODE_HEARTBEAT_INTERVAL": "at most a third of NODE_LOST_AFTER less NODE_STOP_MARGIN (7s)"}},
		"alias is blamed":           {loadController, env{"MONITOR_HEARTBEAT_TIMEOUT": "11m"}, env{"MONITOR_HEARTBEAT_TIMEOUT": `"11m", want a length of time from 200ms to 10m`}},
		"alias against the name":    {loadController, env{"NODE_LOST_AFTER": "9s", "MONITOR_HEARTBEAT_TIMEOUT": "20"}, env{"MONITOR_HEARTBEAT_TIMEOUT": `is "20", want it not set, because NODE_LOST_AFTER ("9s") is set too`}},
		"attachments and event":     {loadController, env{"TASK_MAX_BYTES": "262145", "EVENT_MAX_BYTES": "327680"}, env{"TASK_MAX_BYTES": "at most 262144"}},
		"result and event":          {loadNode, env{"RESULT_MAX_BYTES": "262145", "EVENT_MAX_BYTES": "327680"}, env{"RESULT_MAX_BYTES": "at most 262144"}},
		"sasl without password":     {loadNode, env{"KAFKA_USERNAME": "u"}, env{"KAFKA_PASSWORD": "is not set, want a password for the SASL mechanism plain"}},
		"sasl without user":         {loadNode, env{"KAFKA_SASL_MECHANISM": "plain", "KAFKA_PASSWORD": "p"}, env{"KAFKA_USERNAME": "is not set"}},
		"kafka password for nobody": {loadNode, env{"KAFKA_PASSWORD": "hunter2"}, env{"KAFKA_PASSWORD": `is "***", want it not set, or KAFKA_USERNAME`}},
		"redis user alone":          {loadNode, env{"REDIS_USERNAME": "u"}, env{"REDIS_PASSWORD": "is not set"}},
		"cluster with db":           {loadNode, env{"REDIS_CLUSTER_ADDRS": "r:1", "REDIS_DB": "1"}, env{"REDIS_DB": `"1", want 0`}},
		"cluster with replicas":     {loadNode, env{"REDIS_CLUSTER_ADDRS": "r:1", "REDIS_WAIT_REPLICAS": "1"}, env{"REDIS_WAIT_REPLICAS": `"1", want 0`}},
		"cluster and sentinel":      {loadNode, env{"REDIS_CLUSTER_ADDRS": "r:1", "REDIS_SENTINEL_ADDRS": "s:1", "REDIS_SENTINEL_MASTER": "m"}, env{"REDIS_SENTINEL_ADDRS": "because REDIS_CLUSTER_ADDRS"}},
		"sentinel without master":   {loadNode, env{"REDIS_SENTINEL_ADDRS": "s:1"}, env{"REDIS_SENTINEL_MASTER": "is not set"}},
		"master without sentinel":   {loadNode, env{"REDIS_SENTINEL_MASTER": "m", "REDIS_SENTINEL_USERNAME": "u", "REDIS_SENTINEL_PASSWORD": "p"}, env{"REDIS_SENTINEL_MASTER": "or REDIS_SENTINEL_ADDRS too", "REDIS_SENTINEL_USERNAME": "too", "REDIS_SENTINEL_PASSWORD": `"***"`}},
		"sentinel user alone":       {loadNode, env{"REDIS_SENTINEL_ADDRS": "s:1", "REDIS_SENTINEL_MASTER": "m", "REDIS_SENTINEL_USERNAME": "u"}, env{"REDIS_SENTINEL_PASSWORD": "is not set"}},
		"tls files without tls":     {loadNode, env{"REDIS_TLS_CA_FILE": "ca", "REDIS_TLS_CERT_FILE": "c", "REDIS_TLS_KEY_FILE": "k", "REDIS_TLS_SKIP_VERIFY": "true"}, env{"REDIS_TLS_CA_FILE": "or REDIS_TLS=true", "REDIS_TLS_CERT_FILE": "REDIS_TLS=true", "REDIS_TLS_KEY_FILE": "REDIS_TLS=true", "REDIS_TLS_SKIP_VERIFY": "REDIS_TLS=true"}},
		"tls cert without key":      {loadNode, env{"KAFKA_TLS": "true", "KAFKA_TLS_CERT_FILE": "c"}, env{"KAFKA_TLS_KEY_FILE": "is not set"}},
		"tls key without cert":      {loadNode, env{"KAFKA_TLS": "true", "KAFKA_TLS_KEY_FILE": "k"}, env{"KAFKA_TLS_CERT_FILE": "is not set"}},
		"tls file not there":        {loadNode, env{"KAFKA_TLS": "true", "KAFKA_TLS_CA_FILE": "no/such.pem"}, env{"KAFKA_TLS_CA_FILE": `is "no/such.pem", want a file that can be read: open no/such.pem`}},
		"secret file not there":     {loadClient, env{"API_TOKEN_FILE": "no/such"}, env{"API_TOKEN_FILE": `is "no/such", want a file that can be read: open no/such`}},

		"one problem a variable": {loadNode, env{"NODE_HEARTBEAT_INTERVAL": "1h"}, env{"NODE_HEARTBEAT_INTERVAL": "from 50ms to 10s"}},

		"all at once": {
			loadController,
			env{
				"KAFKA_PORT": "x", "REDIS_PORT": "0", "DISPATCHER_INTERVAL": "soon", "STORE": "disk", "KAFKA_TLS": "maybe",
				"SYSTEM_CONTROLLER_HOST": "0.0.0.0", "KAFKA_USERNAME": "u", "NODE_STOP_MARGIN": "9s",
			},
			env{
				"KAFKA_PORT": `"x"`, "REDIS_PORT": `"0"`, "DISPATCHER_INTERVAL": `"soon"`, "STORE": "mongo, memory, sqlite", "KAFKA_TLS": "true or false",
				"API_TOKEN": "not set", "KAFKA_PASSWORD": "not set", "NODE_STOP_MARGIN": `"9s"`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			setEnv(t, tt.env)
			_, err := tt.load()
			if err == nil {
				t.Fatal("it loads")
			}
			found := problems(t, err)
			for variable, part := range tt.want {
				p, ok := found[variable]
				if !ok || !strings.Contains(p.String(), part) {
					t.Errorf("%s: got %q, want a line with %q", variable, p.String(), part)
				}
				if !strings.Contains(err.Error(), p.String()) {
					t.Errorf("the error does not say %q: %v", p.String(), err)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines != len(tt.want) {
				t.Errorf("got %d problems, want %d: %v", lines, len(tt.want), err)
			}
		})
	}
}

func TestSecretFiles(t *testing.T) {
	write := func(t *testing.T, content string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	for name, content := range map[string]string{"bare": "s3cret", "newline": "s3cret\n", "windows": "s3cret\r\n"} {
		t.Run(name, func(t *testing.T) {
			setEnv(t, map[string]string{"API_TOKEN_FILE": write(t, content)})
			c, err := config.LoadClient()
			if err != nil || c.APIToken.Reveal() != "s3cret" {
				t.Errorf("got %q, %v", c.APIToken.Reveal(), err)
			}
		})
	}
	t.Run("mongo", func(t *testing.T) {
		setEnv(t, map[string]string{"MONGO_HOST_FILE": write(t, "mongodb://u:p@h\n")})
		c, err := config.LoadController()
		if err != nil || c.URI.Reveal() != "mongodb://u:p@h" {
			t.Errorf("got %q, %v", c.URI.Reveal(), err)
		}
	})
	for name, tt := range map[string]struct{ content, token, want string }{
		"empty":     {"\n", "", "want a file that is not empty"},
		"too large": {strings.Repeat("a", 64<<10+1), "", "want a file of at most 65536 bytes"},
		"both":      {"s3cret", "other", `want it not set, because API_TOKEN ("***") is set too`},
		"unusable":  {"two s3cret words", "", "want at most 1000 visible ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, tt.content)
			setEnv(t, map[string]string{"API_TOKEN_FILE": path, "API_TOKEN": tt.token})
			_, err := config.LoadClient()
			p := problems(t, err)["API_TOKEN_FILE"]
			if p.Value != path || !strings.Contains(p.String(), tt.want) {
				t.Errorf("got %q, want %q", p.String(), tt.want)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "other") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
	t.Run("bad file is the only problem", func(t *testing.T) {
		setEnv(t, map[string]string{"API_TOKEN_FILE": "no/such", "SYSTEM_CONTROLLER_HOST": "0.0.0.0"})
		_, err := config.LoadController()
		if found := problems(t, err); len(found) != 1 || found["API_TOKEN_FILE"].Value != "no/such" {
			t.Errorf("got %v", err)
		}
	})
}

func TestNodeIDsDiffer(t *testing.T) {
	setEnv(t, nil)
	a, errA := config.LoadNode()
	b, errB := config.LoadNode()
	if errA != nil || errB != nil || a.ID == b.ID || a.ID == "" {
		t.Errorf("got %q and %q, %v, %v", a.ID, b.ID, errA, errB)
	}
}
