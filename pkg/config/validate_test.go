package config_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/config"
)

// A struct that a program filled in is held to the same rules as one that was
// read from the environment.
func TestValidate(t *testing.T) {
	setEnv(t, nil)
	controller, err := config.LoadController()
	if err != nil {
		t.Fatal(err)
	}
	node, err := config.LoadNode()
	if err != nil {
		t.Fatal(err)
	}
	withController := func(change func(*config.Controller)) func() error {
		return func() error { c := controller; change(&c); return c.Validate() }
	}
	withNode := func(change func(*config.Node)) func() error {
		return func() error { n := node; change(&n); return n.Validate() }
	}
	tests := map[string]struct {
		validate func() error
		want     string // "" for no error
	}{
		"controller":    {withController(func(*config.Controller) {}), ""},
		"node":          {withNode(func(*config.Node) {}), ""},
		"no prefetch":   {withNode(func(n *config.Node) { n.Prefetch = 0 }), ""},
		"no mode":       {withController(func(c *config.Controller) { c.Mode = "" }), "SYSTEM_CONTROLLER_MODE is not set, want one of"},
		"mode's case":   {withController(func(c *config.Controller) { c.Mode = "monitor" }), `SYSTEM_CONTROLLER_MODE is "monitor"`},
		"store":         {withController(func(c *config.Controller) { c.Store = "X" }), `STORE is "X"`},
		"node's mode":   {withNode(func(n *config.Node) { n.Mode = "X" }), `SKALD_MODE is "X"`},
		"mechanism":     {withNode(func(n *config.Node) { n.SASLMechanism = "X" }), `KAFKA_SASL_MECHANISM is "X"`},
		"log level":     {withNode(func(n *config.Node) { n.Level = "X" }), `LOG_LEVEL is "X"`},
		"no id":         {withNode(func(n *config.Node) { n.ID = "" }), "SKALD_ID is not set"},
		"no capacity":   {withNode(func(n *config.Node) { n.Capacity = 0 }), `NODE_CAPACITY is "0"`},
		"label":         {withNode(func(n *config.Node) { n.Labels = config.Labels{"a b": ""} }), "NODE_LABELS is"},
		"broker":        {withNode(func(n *config.Node) { n.Brokers = config.Addresses{"k"} }), `KAFKA_BROKERS is "k"`},
		"no heartbeat":  {withNode(func(n *config.Node) { n.HeartbeatInterval = 0 }), `NODE_HEARTBEAT_INTERVAL is "0s"`},
		"client":        {config.Client{Server: "https://example.org/skalds"}.Validate, ""},
		"client of ftp": {config.Client{Server: "ftp://example.org"}.Validate, "SKALDS_SERVER is"},
		"long value":    {config.Client{Server: strings.Repeat("x", 10_000)}.Validate, strings.Repeat("x", 200) + `...", want`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.validate()
			if tt.want == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[config.LogLevel]slog.Level{
		config.LogDebug: slog.LevelDebug, config.LogInfo: slog.LevelInfo, config.LogWarn: slog.LevelWarn,
		config.LogError: slog.LevelError, "": slog.LevelInfo,
	} {
		if got := level.Slog(); got != want {
			t.Errorf("%q: got %v, want %v", level, got, want)
		}
	}
}
