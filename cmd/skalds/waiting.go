package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/backend"
	"github.com/skalds-go/skalds/pkg/config"
)

// lent is a listener that a server cannot close, only leave.
type lent struct{ *net.TCPListener }

// Close implements net.Listener: it ends an Accept under way.
func (l lent) Close() error {
	return l.SetDeadline(time.Unix(1, 0)) //nolint:wrapcheck // it stands for the listener
}

// waitingGrace is how long a request may take that came just before the store answered.
const waitingGrace = time.Second

// controllerDepsWhileServing is controllerDeps. Until the store has answered, the listener says that it has not.
func controllerDepsWhileServing(ctx context.Context, listener net.Listener, c *config.Controller, log logger) (controller.Deps, func(), error) {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return controller.Deps{}, nil, fmt.Errorf("a listener of kind %T cannot be lent", listener)
	}
	waiting, end := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		served <- api.Serve(waiting, lent{tcp}, api.Waiting(backend.StoreName(c.Store)), waitingGrace, log)
	}()
	deps, closeDeps, err := controllerDeps(ctx, c, log)
	end()
	if e := <-served; e != nil {
		log.Debug("a request came while the store was waited for, and was cut", "error", e)
	}
	if err != nil {
		return controller.Deps{}, nil, err
	}
	if err := tcp.SetDeadline(time.Time{}); err != nil {
		closeDeps()
		return controller.Deps{}, nil, fmt.Errorf("listen for the API: %w", err)
	}
	return deps, closeDeps, nil
}
