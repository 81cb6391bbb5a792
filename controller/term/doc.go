// Package term runs one leadership: the loops that listen, and the loops that act.
//
//	begin:  listen -> announce the term -> load positions -> take in what nodes hold  -> act
//	                                                                                     |
//	listening loops: heartbeats, reports     until the document names another leader     |
//	acting loops:    dispatcher, monitor, delayed tasks, settings, recall   <------------+   until the lease is over
//
// The order of these steps matters. Nodes that know of this leader obey no other one, so it must listen before it
// announces its term. Nodes must no longer obey an older leader when the waits for silent nodes begin. The term must
// know the nodes and what they hold before it places the first task.
package term
