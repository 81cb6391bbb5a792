package election

import "context"

// Beginning is what a leadership does before it acts. The order is what makes it right: nodes that know of this leader take nobody else's word,
// so it must hear them by then; they must not take the word of an older leader any more when the waits for silent ones begin; and what nodes
// hold, and who is there, must be known before the first task is placed.
type Beginning struct {
	Listen   func()                      // begin to hear heartbeats, and once loaded, to read reports; it goes on when the acting is over
	Announce func(context.Context) error // write the term to every node partition
	Load     func(context.Context) error // learn from where reports are to be read
	Prime    func(context.Context) error // take in the claims and the nodes
}

// Run begins a leadership. Try is called with each step, and tries it until it succeeds, or the leadership is over: then it reports false, and so
// does Run.
func (b Beginning) Run(try func(what string, step func(context.Context) error) bool) bool {
	b.Listen()
	return try("announce the term", b.Announce) && try("learn from where to read reports", b.Load) && try("take in what nodes hold", b.Prime)
}
