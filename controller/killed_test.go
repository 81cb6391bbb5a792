package controller_test

import (
	"context"
	"sync/atomic"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/config"
)

// muted is a controller's way to the bus, which ends with it.
type muted struct {
	controller.Bus
	gone atomic.Bool
}

var _ controller.Bus = (*muted)(nil)

func (m *muted) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	if m.gone.Load() {
		return errCut
	}
	return m.Bus.Publish(ctx, topic, partition, records)
}

// mortal starts a controller that can be killed: from then on nothing that it writes or sends arrives anywhere.
func (s *system) mortal(change ...func(*config.Controller)) (kill func()) {
	st, bus := &leaving{Store: s.store}, &muted{Bus: s.bus}
	stop := s.controllerWith(func(d *controller.Deps) { d.Store, d.Bus = st, bus }, change...)
	return func() {
		st.leave()
		bus.gone.Store(true)
		stop()
	}
}
