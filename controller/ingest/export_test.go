package ingest

import (
	"context"

	"github.com/skalds-go/skalds/events/kafka"
)

// Observe takes in the heartbeats among records.
func (s *Service) Observe(records []kafka.Record) { s.observe(records) }

// Confirm confirms what was taken in.
func (s *Service) Confirm(ctx context.Context) error { return s.confirm(ctx) }
