package main

import (
	"context"
	"sync/atomic"
)

// second is what a second SIGINT or SIGTERM does; then a third ends the process. If nothing is set, the second does.
type second struct{ do atomic.Pointer[func()] }

type secondKey struct{}

func (s *second) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, secondKey{}, s)
}

// come does what is set, and reports whether anything was.
func (s *second) come() bool {
	do := s.do.Load()
	if do == nil {
		return false
	}
	(*do)()
	return true
}

// onSecond makes a second signal call do, which must not block.
func onSecond(ctx context.Context, do func()) {
	if s, ok := ctx.Value(secondKey{}).(*second); ok {
		s.do.Store(&do)
	}
}
