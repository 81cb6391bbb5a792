// Package term is what one leadership runs: the loops that listen, and the loops that act.
//
//	begin:  listen -> announce the term -> load positions -> take in what nodes hold  -> act
//	                                                                                     |
//	listening loops: heartbeats, reports     until the document is another leader's      |
//	acting loops:    dispatcher, monitor, delayed tasks, settings, recall   <------------+   until the lease is over
//
// The order of the beginning is what makes it right. Nodes that know of this leader take nobody else's word, so it must hear them by then.
// They must not take the word of an older leader any more when the waits for silent ones begin. What nodes hold, and who is there, must be
// known before the first task is placed.
package term
