package session

// terms is what a node knows of its leaders, and keeps for the next one: how many tasks ROUND_ROBIN counts for this
// incarnation. The present leader sends the count with what it assigns. A new leader reads it from the first heartbeat
// that names its own term. There it must be what the leaders before had counted, whatever the new one has sent by then;
// so it is frozen when a term is first seen.
type terms struct {
	term            int64 // the highest so far
	roundRobinCount int64 // as last received
	countBefore     int64 // roundRobinCount when term was first seen
	known           bool  // the leader of term has sent a count
}

// observe takes in the term of an event. It reports whether the event counts, and whether its term is a new one.
func (t *terms) observe(term int64) (counts, higher bool) {
	if term > t.term {
		t.term, t.countBefore, t.known = term, t.roundRobinCount, false
		return true, true
	}
	return term == t.term, false
}

// setRoundRobinCount takes in the count of an event of the present term; 0 is none. Within a term the count only goes
// up, so a copy of an older event changes nothing. The first count of a leader holds whatever the older leaders sent.
func (t *terms) setRoundRobinCount(n int64) {
	if n > 0 && (!t.known || n > t.roundRobinCount) {
		t.roundRobinCount, t.known = n, true
	}
}
