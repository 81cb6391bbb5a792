package node

// recent is a set of the newest keys that were put into it, at most limit of them.
type recent[K comparable] struct {
	limit int
	set   map[K]struct{}
	order []K // a ring once it is full
	next  int // where the ring is written next
}

func newRecent[K comparable](limit int) *recent[K] {
	return &recent[K]{limit: limit, set: map[K]struct{}{}}
}

func (r *recent[K]) has(k K) bool { _, ok := r.set[k]; return ok }

// add puts k in; the oldest key makes room.
func (r *recent[K]) add(k K) {
	if r.has(k) {
		return
	}
	r.set[k] = struct{}{}
	if len(r.order) < r.limit {
		r.order = append(r.order, k)
		return
	}
	delete(r.set, r.order[r.next])
	r.order[r.next] = k
	r.next = (r.next + 1) % r.limit
}

// take says whether k was in the set, and takes it out. Its place in the ring stays used until its time comes.
func (r *recent[K]) take(k K) bool {
	if !r.has(k) {
		return false
	}
	delete(r.set, k)
	return true
}
