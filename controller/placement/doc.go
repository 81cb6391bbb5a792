// Package placement decides which node runs which task. It is pure: no I/O, no clock, no goroutine; the same calls give
// the same decisions.
//
// A decision is filter -> score -> pick. Filters: the node has the class, its labels match, it is not excluded, it has
// room. The score is the strategy's. What was placed counts at once, so that a burst spreads however old the nodes' own
// figures are.
//
// Invariants:
//
//   - No node is given more than its capacity, nor more of a class than its capacity for it; or, for a class of short
//     runs and only when no node has a free slot, not more than its capacity and prefetch together (see Queue).
//   - A task that must be alone gets an empty node, and nothing is placed beside it.
//   - Every task gets a node or a reason.
//   - Memory is bounded by the nodes, whatever tasks ask for.
//
// How it is fast: tasks that ask for the same share a candidate set, which holds the nodes that match in the order of
// the strategy. Placing only makes a node a worse pick for most strategies, so candidate sets need not hear of it: they
// look at a node again when it comes to their top. What makes a node a better pick is written to a log of changed
// nodes, which a candidate set reads on from where it was when it is used next. A candidate set that is too far behind,
// or was dropped since others were used more recently, is built anew from an index of the nodes by class and label.
package placement
