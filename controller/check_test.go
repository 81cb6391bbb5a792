package controller_test

import (
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/config"
)

// What a person may set at run time may stand in the configuration, too.
func TestEveryStrategyMayBeConfigured(t *testing.T) {
	t.Parallel()
	names := []string{"round-robin", "least_loaded", "IDLE|SPREAD:zone"}
	for _, s := range placement.Strategies() {
		names = append(names, string(s))
	}
	for _, name := range names {
		cfg := config.DefaultController()
		cfg.DispatcherStrategy = name
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		if err := controller.Check(&cfg); err != nil {
			t.Error(err)
		}
	}
}

func TestAStrategyThatThereIsNotIsRefusedWithThoseThatThereAre(t *testing.T) {
	t.Parallel()
	cfg := config.DefaultController()
	cfg.DispatcherStrategy = "fifo"
	err := controller.Check(&cfg)
	if err == nil || !strings.Contains(err.Error(), `DISPATCHER_STRATEGY is "fifo", want one of LEAST_TASKS, ROUND_ROBIN, RANDOM, `) {
		t.Errorf("%v", err)
	}
}
