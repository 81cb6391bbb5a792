package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/connect"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/store/mongo"
	"github.com/skalds-go/skalds/pkg/store/sqlite"
)

type logger = *slog.Logger

// newLogger writes text from a level on.
func newLogger(w io.Writer, level slog.Level) logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// openStore makes the store of the tasks. A database that does not answer yet is waited for until ctx ends; the log
// says so once.
func openStore(ctx context.Context, c *config.Controller, log logger) (store.Store, error) {
	switch c.Store {
	case config.StoreMemory:
		return memory.New(), nil
	case config.StoreSQLite:
		return sqlite.Open(ctx, c.Path, sqlite.Options{Sync: sqlite.Sync(c.Sync)})
	case config.StoreMongo:
	}
	for said := false; ; said = true {
		s, err := mongo.Open(ctx, string(c.URI), c.Database)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		if !said {
			log.Warn("waiting for MongoDB (MONGO_HOST); until it answers, the API says so and takes nothing", "error", err)
		}
		timer := time.NewTimer(storePause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// storePause is the time between two tries to reach the database.
const storePause = 500 * time.Millisecond

// controllerDeps makes what a controller stands on. The function closes it.
func controllerDeps(ctx context.Context, c *config.Controller, log logger) (controller.Deps, func(), error) {
	var closers []func() error
	closeAll := func() {
		for _, closer := range slices.Backward(closers) {
			if err := closer(); err != nil {
				log.Debug("close", "error", err)
			}
		}
	}
	bus, err := connect.Kafka(c.Kafka, "skalds-controller", log)
	if err != nil {
		return controller.Deps{}, nil, err
	}
	closers = append(closers, func() error { bus.Close(); return nil })
	reg, err := connect.Redis(c.Redis, log)
	if err != nil {
		closeAll()
		return controller.Deps{}, nil, err
	}
	closers = append(closers, reg.Close)
	tasks, err := openStore(ctx, c, log)
	if err != nil {
		closeAll()
		return controller.Deps{}, nil, err
	}
	closers = append(closers, func() error { return tasks.Close(context.WithoutCancel(ctx)) })
	return controller.Deps{
		Store: tasks, Registry: reg, Bus: bus,
		Open: func(topic string, partition int, from kafka.Position) ingest.Reader {
			return bus.Reader(topic, partition, from)
		},
		Clock: clock.System{}, Log: log, Version: version,
	}, closeAll, nil
}
