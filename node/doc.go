// Package node is the SDK for programs that run tasks.
//
//	n, err := node.New(node.ConfigFromEnv())
//	node.Handle(n, "resize", func(ctx context.Context, in Resize) (Resized, error) { … })
//	err = n.Run(ctx)
//
// A node registers itself, is assigned tasks of the classes that it has handlers for, runs them, and reports what
// becomes of them. It needs no address of its own: all that it has to reach is Kafka and Redis.
//
// A handler may run more than once for one task: after a failure, and when its node dies or is cut off. Each run has a
// number, [Task].Attempt. A node that nothing confirms any more ends the contexts of all its handlers, with the cause
// [ErrLeaseLost], before the tasks run elsewhere. Handlers that return within NODE_STOP_MARGIN then never overlap.
//
// Package nodetest tests handlers from end to end, in memory. Package session is what runs below.
package node
