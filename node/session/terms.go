package session

// terms is what a node knows of its leaders, and keeps for the next one: how many tasks ROUND_ROBIN counts for this incarnation. The present
// leader tells it with what it assigns. A new leader reads it in the first heartbeat that names its own term, and there it must be what the
// leaders before had counted, whatever the new one has sent by then; so it is frozen when a term is first seen.
type terms struct {
	term            int64 // the highest that was seen
	roundRobinCount int64 // as last told
	countBefore     int64 // turn when term was first seen
	known           bool  // the leader of term has told one
}

// observe takes in the term of an event. It says whether the event counts, and whether its term is a new one.
func (t *terms) observe(term int64) (counts, higher bool) {
	if term > t.term {
		t.term, t.countBefore, t.known = term, t.roundRobinCount, false
		return true, true
	}
	return term == t.term, false
}

// setRoundRobinCount takes in what an event of the present term says is counted; 0 is nothing. A copy of an older event changes nothing: within a term it only
// goes up. The first word of a leader counts whatever the older ones said.
func (t *terms) setRoundRobinCount(turn int64) {
	if turn > 0 && (!t.known || turn > t.roundRobinCount) {
		t.roundRobinCount, t.known = turn, true
	}
}
