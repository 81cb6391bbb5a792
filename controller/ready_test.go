package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
)

type (
	pingedStore struct {
		store.Store

		ping func(context.Context) error
	}
	pingedRegistry struct {
		registry.Registry

		ping func(context.Context) error
	}
	pingedBus struct {
		Bus

		ping func(context.Context) error
	}
)

func (p pingedStore) Ping(ctx context.Context) error    { return p.ping(ctx) }
func (p pingedRegistry) Ping(ctx context.Context) error { return p.ping(ctx) }
func (p pingedBus) Ping(ctx context.Context) error      { return p.ping(ctx) }

func (pingedBus) Ensure(context.Context, []kafka.TopicSpec) error { return nil }

// Readiness names each part that is gone or hangs, all of them, and does not wait longer for them than for one.
func TestReadinessNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	answers := func(context.Context) error { return nil }
	gone := func(context.Context) error { return errors.New("connection refused") }
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		store               config.StoreKind
		mongo, redis, kafka func(context.Context) error
		topics              error
		want                string
	}{
		"all is well":            {"", answers, answers, answers, nil, "[]"},
		"no MongoDB":             {config.StoreMongo, gone, answers, answers, nil, "[{mongodb connection refused}]"},
		"MongoDB hangs":          {config.StoreMongo, hangs, answers, answers, nil, "[{mongodb context deadline exceeded}]"},
		"no file":                {config.StoreSQLite, gone, answers, answers, nil, "[{sqlite connection refused}]"},
		"no Redis":               {"", answers, gone, answers, nil, "[{redis connection refused}]"},
		"Redis hangs":            {"", answers, hangs, answers, nil, "[{redis context deadline exceeded}]"},
		"no Kafka":               {"", answers, answers, gone, nil, "[{kafka connection refused}]"},
		"Kafka hangs":            {"", answers, answers, hangs, nil, "[{kafka context deadline exceeded}]"},
		"the topics are missing": {"", answers, answers, answers, errors.New("not looked for yet"), "[{topics not looked for yet}]"},
		"all hang": {
			"", hangs, hangs, hangs, nil,
			"[{mongodb context deadline exceeded} {redis context deadline exceeded} {kafka context deadline exceeded}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := New(config.Controller{Store: tt.store}, Deps{
					Store: pingedStore{ping: tt.mongo}, Registry: pingedRegistry{ping: tt.redis}, Bus: pingedBus{ping: tt.kafka},
					Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
				})
				if tt.topics == nil {
					if _, err := c.topics.Loop().Step(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				if got := fmt.Sprint(c.notReady(t.Context())); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if took := time.Since(began); took > readyTimeout {
					t.Errorf("answered after %s", took)
				}
			})
		})
	}
}
