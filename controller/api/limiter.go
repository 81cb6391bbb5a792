package api

import (
	"context"
	"time"
)

// limitWait is how long a request waits for its turn before it is refused.
const limitWait = 5 * time.Second

// limiter bounds how many of something run at once.
type limiter chan struct{}

func newLimiter(limit int) limiter { return make(limiter, limit) }

// try takes a place if there is one now.
func (l limiter) try() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait takes a place, for which it waits up to limitWait.
func (l limiter) wait(ctx context.Context) bool {
	if l.try() {
		return true
	}
	over := time.NewTimer(limitWait)
	defer over.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-over.C:
	case <-ctx.Done():
	}
	return false
}

func (l limiter) release() { <-l }
