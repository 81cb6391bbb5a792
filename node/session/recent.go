package session

// recent is a set of the keys that were added last, at most limit of them.
type recent[K comparable] struct {
	limit int
	place map[K]int // of each key in the ring
	ring  []K
	next  int // the place that add overwrites next, once the ring is full
}

func newRecent[K comparable](limit int) *recent[K] {
	return &recent[K]{limit: limit, place: map[K]int{}}
}

func (r *recent[K]) has(k K) bool { _, ok := r.place[k]; return ok }

// add adds k. If the set is full, the oldest key goes.
func (r *recent[K]) add(k K) {
	if r.has(k) {
		return
	}
	if len(r.ring) < r.limit {
		r.place[k] = len(r.ring)
		r.ring = append(r.ring, k)
		return
	}
	if old := r.ring[r.next]; r.has(old) && r.place[old] == r.next { // else it was removed, and may have been added again
		delete(r.place, old)
	}
	r.place[k], r.ring[r.next] = r.next, k
	r.next = (r.next + 1) % r.limit
}

// remove removes k, and reports whether it was in the set. Its place in the ring stays used until add comes to it.
func (r *recent[K]) remove(k K) bool {
	if !r.has(k) {
		return false
	}
	delete(r.place, k)
	return true
}
