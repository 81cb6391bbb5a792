// Package loop runs everything that a process does over and over.
//
// A [Loop] is data: a name, what wakes it, and a step that does the work once and returns when it wants to run next. A
// [Runner] adds what all loops share: the wait, the pause after a failure, one log line for a failure and one for its
// end, the deadline of a step, and the end of the context. A [Group] is loops that end together.
//
// Everything that waits does so through a [Driver]. [System] waits in a real process. The simulation has a driver of
// virtual time, and runs the very same loops with it. So a step never blocks on a channel, a timer or a WaitGroup; it
// calls its dependencies and returns, and code that has to wait in between calls Wait.
//
//	           fires, or its time comes
//	wait  ------------------------------->  step
//	 ^                                       |
//	 |  After, Rest, OnWake                  |  Done, or the context has ended
//	 +---------------------------------------+---------------------------------->  End
//	 ^                                       |
//	 |  after a pause that doubles           |  error
//	 +---------------------------------------+
package loop
