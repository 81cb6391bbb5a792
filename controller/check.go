package controller

import (
	"strings"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/config"
)

// Check says what cannot be used of a configuration that is valid by itself: what only the controller's parts know. Its
// error is a *config.Error. It is to be asked before anything starts.
func Check(cfg *config.Controller) error {
	if _, ok := placement.ParseStrategy(cfg.DispatcherStrategy); ok {
		return nil
	}
	names := make([]string, 0, len(placement.Strategies()))
	for _, s := range placement.Strategies() {
		names = append(names, string(s))
	}
	return &config.Error{Problems: []config.Problem{{
		Variable: "DISPATCHER_STRATEGY", Value: cfg.DispatcherStrategy, Want: "one of " + strings.Join(names, ", "),
	}}}
}
