package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

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

func TestDevReadsWhatItDoesNotGive(t *testing.T) {
	setEnv(t, map[string]string{
		"DISPATCHER_STRATEGY": "round-robin", "LEADER_LEASE": "1s", "NODE_HEARTBEAT_INTERVAL": "250ms", "NODE_LOST_AFTER": "2s", "NODE_STOP_MARGIN": "250ms",
		"NODE_CAPACITY": "3", "DRAIN_SOFT": "9s", "LOG_LEVEL": "debug",
		"KAFKA_HOST": "no host", "KAFKA_TLS_CA_FILE": "nowhere", "REDIS_PORT": "x", "STORE": "paper", "SKALD_ID": "a b", "SYSTEM_CONTROLLER_PORT": "x", "API_TOKEN": "a b",
	})
	d, err := config.LoadDev()
	if err != nil {
		t.Fatal(err)
	}
	want := config.Dev{Controller: config.DefaultController(), Node: config.DefaultNode()}
	want.Controller.DispatcherStrategy, want.Controller.LeaderLease = "round-robin", time.Second
	want.Controller.Liveness = config.Liveness{HeartbeatInterval: 250 * time.Millisecond, LostAfter: 2 * time.Second, StopMargin: 250 * time.Millisecond}
	want.Controller.MonitorSkaldInterval = 250 * time.Millisecond
	want.Controller.Level, want.Node.Level = config.LogDebug, config.LogDebug
	want.Node.Liveness = want.Controller.Liveness
	want.Node.Capacity, want.Node.Prefetch = 3, 12
	want.Node.DrainSoft, want.Node.DrainHard = 9*time.Second, time.Second
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got\n%+v, want\n%+v", d, want)
	}
}

// TestDevNamesAProblemOnce: the variable is for the controller and for the nodes.
func TestDevNamesAProblemOnce(t *testing.T) {
	for variable, value := range map[string]string{"DISPATCHER_PRIORITY_MODE": "fairest", "NODE_LOST_AFTER": "1s", "CANCEL_GRACE": "x", "NODE_CAPACITY": "0"} {
		t.Run(variable, func(t *testing.T) {
			setEnv(t, map[string]string{variable: value})
			_, err := config.LoadDev()
			if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), variable) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
