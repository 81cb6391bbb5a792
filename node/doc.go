// Package node is the SDK for programs that run tasks, and the node process itself.
//
//	n, err := node.New(node.ConfigFromEnv())
//	node.Handle(n, "resize", func(ctx context.Context, in Resize) (Resized, error) { … })
//	err = n.Run(ctx)
//
// A node reads one partition of task.assign and of task.control, runs a handler for each claim that is meant for it, reports on
// task.status, and renews its registration. One registration is a session; a session that lost its trust ends all its work, and the
// node begins another one, under a new incarnation that owns none of the old work.
//
//	task.assign ──► assign reader ──┐            ┌──► handler (one goroutine each)
//	                                ├──► claims ─┤
//	task.control ─► control reader ─┘     │      └──► flusher ──► task.status
//	                                      └─────────► beater ───► registry ───► trust
//
// Invariants:
//
//   - A node registers only once it reads from end offsets that were taken before (registered means ready).
//   - Never more handlers run than the capacity, and no claim is started twice, whatever copies of it arrive.
//   - Nothing is started, reported or renewed after the trust has ended: (time at which the last confirmed heartbeat was SENT) +
//     NODE_LOST_AFTER - NODE_STOP_MARGIN, by a clock that runs on in suspend. A late answer does not stretch it.
//   - Reports are state, not a queue: each claim has one newest report, which is sent until the bus has it, and a final one until
//     the leader has confirmed that it is settled. A claim is forgotten only then.
//   - Control never waits for a handler, and no handler keeps another claim from starting while there is room.
//   - Everything held in memory is bounded (see the limits in claims.go).
package node
