package placement

// remembered is the number of placements that can be taken back: the latest ones. A round places fewer.
const remembered = 1 << 16

// tickets records which of the latest placements were taken back, so that each is taken back at most once.
type tickets struct {
	used []uint64 // a bit for each of the latest placements
}

// issue records a new placement.
func (t *tickets) issue(number uint64) {
	if t.used == nil {
		t.used = make([]uint64, remembered/64)
	}
	at := number % remembered
	t.used[at/64] &^= 1 << (at % 64)
}

// redeem records that a placement is taken back. It reports false if that was done before, or if the placement is too
// old. The number of the latest placement is latest.
func (t *tickets) redeem(number, latest uint64) bool {
	if number == 0 || number > latest || latest-number >= remembered {
		return false
	}
	at := number % remembered
	open := t.used[at/64]&(1<<(at%64)) == 0
	t.used[at/64] |= 1 << (at % 64)
	return open
}
