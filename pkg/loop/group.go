package loop

import (
	"context"
	"sync"
)

// Group is a set of loops that end together. It is safe for concurrent use; loops of a group may start others in it.
type Group struct {
	runner Runner
	ctx    context.Context
	cancel context.CancelFunc
	idle   Wake

	mu      sync.Mutex
	running int
}

// Group returns a group whose loops end with the context, or when it is stopped.
func (r Runner) Group(ctx context.Context) *Group {
	g := &Group{runner: r, idle: NewWake()}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Context returns the context of the group's loops.
func (g *Group) Context() context.Context { return g.ctx }

// Start starts loops.
func (g *Group) Start(loops ...Loop) {
	for _, l := range loops {
		g.Go(l.Name, func(ctx context.Context) { g.runner.Run(ctx, l) })
	}
}

// Go runs f as part of the group, until it returns.
func (g *Group) Go(name string, f func(ctx context.Context)) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	g.runner.Driver.Go(name, func() {
		defer g.ended()
		f(g.ctx)
	})
}

func (g *Group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 {
		g.idle.Signal()
	}
}

// Wait returns when everything that the group runs has ended. Only one caller may wait at a time.
func (g *Group) Wait() {
	for g.left() > 0 {
		g.runner.Driver.Wait(context.Background(), Forever, g.idle)
	}
}

// Stop ends the context of the group, and returns when everything that it runs has ended.
func (g *Group) Stop() {
	g.cancel()
	g.Wait()
}

func (g *Group) left() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}
