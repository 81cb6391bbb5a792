package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the HTTP server.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// writeTimeout is how long a request may take from the end of its header to the end of its answer: a wait, and room
	// for a large one.
	writeTimeout = maxWait + 60*time.Second
)

// Serve answers on the listener until ctx ends. Then it takes no new requests, ends those that only wait, lets the
// others finish within grace, and cuts the rest. It closes the listener. It returns nil after a clean stop.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration, log *slog.Logger) error {
	drain := make(chan struct{})
	var drained <-chan struct{} = drain
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), drainKey{}, drained)
		},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the API on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	close(drain)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(stop)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop the API: requests were still running after %s: %w", grace, err), srv.Close())
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

type drainKey struct{}

// draining is closed when the server of this request stops; nil, which never is, without Serve.
func draining(ctx context.Context) <-chan struct{} {
	drain, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return drain
}
