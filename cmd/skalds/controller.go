package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/pkg/config"
)

func newController() *cobra.Command {
	return &cobra.Command{
		Use:   "controller",
		Short: "Run a controller: API, monitor and dispatcher",
		Long: `Run a controller process, configured by the environment; .env.example lists every variable.

SYSTEM_CONTROLLER_MODE says what it does: CONTROLLER is the API alone, MONITOR also watches the nodes, DISPATCHER does all.
Of several controllers one leads; the others serve the API and stand by. Kafka, Redis and MongoDB may come up later than the
controller: it waits for them, and 'skalds health' says what is missing.`,
		Example: `  KAFKA_HOST=kafka REDIS_HOST=redis MONGO_HOST=mongodb://mongo:27017 skalds controller
  STORE=memory skalds controller    without MongoDB; the tasks are gone when it ends`,
		Args: arguments(),
		RunE: runController,
	}
}

func runController(cmd *cobra.Command, _ []string) error {
	defer runtime.KeepAlive(garbageFloor())
	cfg, err := config.LoadController()
	if err != nil {
		return err
	}
	if err := controller.Check(&cfg); err != nil {
		return err
	}
	log := newLogger(cmd.ErrOrStderr(), cfg.Level.Slog())
	listener, err := listen(cmd, cfg.ListenAddr())
	if err != nil {
		return err
	}
	deps, closeDeps, err := controllerDepsWhileServing(cmd.Context(), listener, &cfg, log)
	if err != nil {
		_ = listener.Close() // nobody has used it
		if cmd.Context().Err() != nil {
			return nil // it was told to stop before it began
		}
		return err
	}
	defer closeDeps()
	log.Info("controller starts", "version", version, "mode", cfg.Mode, "api", "http://"+listener.Addr().String(), "store", cfg.Store)
	err = controller.New(cfg, deps).Run(cmd.Context(), listener)
	log.Info("controller stopped")
	return err
}

// listen opens the port of the API.
func listen(cmd *cobra.Command, addr string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usage(cmd, "SYSTEM_CONTROLLER_PORT: %s is taken by another program; give another port, or 0 for a free one", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the API (SYSTEM_CONTROLLER_HOST, SYSTEM_CONTROLLER_PORT): %w", err)
	}
	return listener, nil
}
