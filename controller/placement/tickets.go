package placement

// remembered is how many placements can be taken back: the latest ones. It is more than a round places.
const remembered = 1 << 16

// tickets knows which of the latest placements were taken back, so that each is at most once.
type tickets struct {
	used []uint64 // a bit for each of the latest
}

// issue begins a placement's life.
func (t *tickets) issue(number uint64) {
	if t.used == nil {
		t.used = make([]uint64, remembered/64)
	}
	at := number % remembered
	t.used[at/64] &^= 1 << (at % 64)
}

// redeem ends it. It reports false if it has ended, or is too old; latest is the number of the latest one.
func (t *tickets) redeem(number, latest uint64) bool {
	if number == 0 || number > latest || latest-number >= remembered {
		return false
	}
	at := number % remembered
	open := t.used[at/64]&(1<<(at%64)) == 0
	t.used[at/64] |= 1 << (at % 64)
	return open
}
