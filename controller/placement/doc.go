// Package placement decides which node runs which task. It is pure: it does no I/O, reads no clock and starts no
// goroutine. The same calls lead to the same decisions.
//
// A decision has three steps: filter, score and pick. A node passes the filters if it has the class, its labels match,
// the request does not exclude it, and it has enough free slots. The strategy scores the nodes that are left. A placed
// task counts at once, so that a burst spreads however old the nodes' own figures are.
//
// Invariants:
//
//   - No node is given more than its capacity, nor more of a class than its capacity for the class. Tasks of a class
//     with short runs may also use a node's prefetch, once no node has a free slot (see PrefetchDepth).
//   - A task that must be alone gets an empty node, and nothing is placed beside it.
//   - Every task gets a node or a reason.
//   - Memory is bounded by the nodes, whatever tasks ask for.
//
// Tasks that ask for the same share a candidate set: the nodes that match, in the order of the strategy. With most
// strategies, placing a task only makes its node a worse pick. Candidate sets need not be told: they look at a node
// again when it comes to their top. A change that makes a node a better pick is written to a log of changed nodes. A
// candidate set reads what is new in the log when it is used. It is built anew, from an index of the nodes by class and
// label, if it is too far behind or was dropped to bound the memory.
package placement
