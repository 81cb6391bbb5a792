package backend

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
)

// pinged answers pings.
type pinged func(context.Context) error

func (p pinged) Ping(ctx context.Context) error { return p(ctx) }

// pingedStore is a store that answers nothing else.
type pingedStore struct {
	Store

	ping pinged
}

func (p pingedStore) Ping(ctx context.Context) error { return p.ping(ctx) }

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
				b := New(Deps{
					Config: config.Controller{Store: tt.store}, Store: pingedStore{ping: tt.mongo}, Registry: pinged(tt.redis), Bus: pinged(tt.kafka),
					Topics: func() error { return tt.topics }, Clock: clock.System{},
				})
				began := time.Now()
				if got := fmt.Sprint(b.NotReady(t.Context())); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if took := time.Since(began); took > readyTimeout {
					t.Errorf("answered after %s", took)
				}
			})
		})
	}
}
