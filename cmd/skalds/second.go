package main

import (
	"context"
	"sync/atomic"
)

// second is what a second SIGINT or SIGTERM does before a third ends the process. Without anything the second ends it.
type second struct{ do atomic.Pointer[func()] }

type secondKey struct{}

func (s *second) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, secondKey{}, s)
}

// come says whether there is something to do, and does it.
func (s *second) come() bool {
	do := s.do.Load()
	if do == nil {
		return false
	}
	(*do)()
	return true
}

// onSecond has a second signal do this. It must not block.
func onSecond(ctx context.Context, do func()) {
	if s, ok := ctx.Value(secondKey{}).(*second); ok {
		s.do.Store(&do)
	}
}
