// Package session is one incarnation of a node, from its registration to its end. Package node wraps it for the authors
// of handlers; the simulation in test/sim runs it on seams of its own.
//
// [Serve] runs one session after the other. A session reads one partition of task.assign and of task.control, runs a
// handler for each claim that is addressed to it, reports on task.status, and renews its registration. A session that
// has lost its lease ends all its work. The next one has a new incarnation and owns none of the old work.
//
//	task.assign  ──► assign loop  ──┐            ┌──► handlers
//	                                ├──► claims ─┤
//	task.control ──► control loop ──┘     │      └──► flush loop ─────► task.status
//	                                      └─────────► heartbeat loop ─► registry ──► lease
//
// A session is cut by what its parts know: what it holds ([claims], [slots], executor), what it trusts (lease, terms),
// and what it sends (reporter, heart). The inbox brings events to them. One lock guards the state of all, see core.
//
// Invariants:
//
//   - A node registers only once it reads from end offsets that were taken before: registered means ready.
//   - No more handlers run than the capacity allows, and no claim starts twice, however many copies of it arrive.
//   - Nothing is started, reported or renewed after the lease has ended. It ends NODE_LOST_AFTER - NODE_STOP_MARGIN
//     after the last confirmed heartbeat was sent, by a clock that runs on while the machine is suspended. A late
//     answer does not extend it.
//   - Reports are state, not a queue. Each claim has one newest report, which is sent until the bus has it. A final
//     report is sent until the leader has acknowledged it; only then the claim is forgotten.
//   - Control never waits for a handler, and no handler keeps another claim from starting while slots are free.
//   - Everything in memory is bounded, see claimLimits.
package session
