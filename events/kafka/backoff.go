package kafka

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
)

// backoff returns how long to wait after the n-th failure in a row (the first is 1): it doubles from minBackoff to
// maxBackoff, and half of it is random, so that clients that lost the same broker do not come back all at once.
func backoff(n int) time.Duration {
	d := maxBackoff
	if n < 8 {
		d = min(maxBackoff, minBackoff<<max(n-1, 0))
	}
	return d/2 + rand.N(d/2+1)
}

// pause waits, or returns early with the context's error or ErrClosed.
func (c *Client) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return ErrClosed
	}
}
