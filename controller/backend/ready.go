package backend

import (
	"context"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

// StoreName returns what people call a store, for answers that say that it is missing.
func StoreName(s config.StoreKind) string {
	if s == config.StoreMongo || s == "" {
		return "mongodb"
	}
	return string(s)
}

// readyTimeout bounds each question of a readiness check.
const readyTimeout = 2 * time.Second

// NotReady asks what this controller needs, all at once, and returns what does not answer.
func (b *Backend) NotReady(ctx context.Context) []client.NotReady {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	parts := []struct {
		name string
		ask  func(context.Context) error
	}{
		{StoreName(b.deps.Config.Store), b.deps.Store.Ping},
		{"redis", b.deps.Registry.Ping},
		{"kafka", b.deps.Bus.Ping},
		{"topics", func(context.Context) error { return b.deps.Topics() }},
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = p.ask(ctx) })
	}
	wg.Wait()
	var missing []client.NotReady
	for i, err := range errs {
		if err != nil {
			missing = append(missing, client.NotReady{Name: parts[i].name, Reason: err.Error()})
		}
	}
	return missing
}
