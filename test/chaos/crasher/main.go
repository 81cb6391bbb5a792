// Command crasher is a controller that can be ended at a named place: see package crash. It is configured as `skalds
// controller` is, with MongoDB, Kafka and Redis without credentials.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry/redis"
	"github.com/skalds-go/skalds/pkg/store/mongo"
	"github.com/skalds-go/skalds/test/chaos/crash"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to cancel
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadController()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.Level.Slog()}))
	tasks, err := mongo.Open(ctx, string(cfg.URI), cfg.Database)
	if err != nil {
		return err
	}
	defer func() { _ = tasks.Close(context.WithoutCancel(ctx)) }()
	bus, err := kafka.NewClient(kafka.Config{Brokers: cfg.Kafka.Addrs(), ClientID: "crasher", Logger: log})
	if err != nil {
		return err
	}
	defer bus.Close()
	nodes, err := redis.Open(redis.Config{Addrs: cfg.Redis.Addrs(), Logger: log})
	if err != nil {
		return err
	}
	defer func() { _ = nodes.Close() }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.ListenAddr())
	if err != nil {
		return err
	}
	trap := crash.NewTrap()
	return controller.New(cfg, controller.Deps{
		Store: &crash.Store{Store: tasks, Trap: trap}, Registry: nodes, Bus: &crash.Bus{Bus: bus, Trap: trap, Width: cfg.TopicPartitions},
		Open: func(topic string, partition int, from kafka.Position) ingest.Reader {
			return bus.Reader(topic, partition, from)
		},
		Clock: clock.System{}, Log: log, Version: "crasher",
	}).Run(ctx, listener)
}
