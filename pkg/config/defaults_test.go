package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/config"
)

// TestDefaultsAreThoseOfAnEmptyEnvironment is not parallel: it empties the environment.
func TestDefaultsAreThoseOfAnEmptyEnvironment(t *testing.T) {
	for _, v := range config.Variables() {
		t.Setenv(v.Name, "")
	}
	c, err := config.LoadController()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.DefaultController(); !reflect.DeepEqual(got, c) {
		t.Errorf("DefaultController is\n%+v, the empty environment gives\n%+v", got, c)
	}
	n, err := config.LoadNode()
	if err != nil {
		t.Fatal(err)
	}
	n.ID = ""
	if got := config.DefaultNode(); !reflect.DeepEqual(got, n) {
		t.Errorf("DefaultNode is\n%+v, the empty environment gives\n%+v", got, n)
	}
}

func TestDefaultsDoNotReadTheEnvironment(t *testing.T) {
	t.Setenv("KAFKA_HOST", "elsewhere")
	t.Setenv("NODE_HEARTBEAT_INTERVAL", "3s")
	for _, got := range []config.Kafka{config.DefaultController().Kafka, config.DefaultNode().Kafka} {
		if got.Host != "127.0.0.1" {
			t.Errorf("the broker's host is %q", got.Host)
		}
	}
	if c := config.DefaultController(); c.MonitorSkaldInterval != c.HeartbeatInterval || c.HeartbeatInterval.Seconds() != 1 {
		t.Errorf("heartbeat %v, read every %v", c.HeartbeatInterval, c.MonitorSkaldInterval)
	}
}

func TestDevTakesTheStrategyFromTheEnvironment(t *testing.T) {
	t.Setenv("DISPATCHER_STRATEGY", "round-robin")
	d, err := config.LoadDev()
	if err != nil || d.DispatcherStrategy != config.StrategyRoundRobin {
		t.Errorf("the strategy is %q, %v", d.DispatcherStrategy, err)
	}
	t.Setenv("DISPATCHER_STRATEGY", "fairest")
	if _, err := config.LoadDev(); err == nil || !strings.Contains(err.Error(), "DISPATCHER_STRATEGY") {
		t.Errorf("a strategy that there is not: %v", err)
	}
}
