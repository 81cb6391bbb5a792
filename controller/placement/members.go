package placement

// What a candidate set notes of a node. The bits from inStage on say in which stages' lists it is.
const (
	isListed   = 1 << iota
	isMatching // its class and labels match
	isAble     // and it can hold such a task, when it is empty
	inStage
)

// members is what a candidate set notes of nodes.
type members struct {
	list     []int32 // nodes that match or have matched, in the order in which they were found
	matching int
	able     int
	byNode[uint8]
}

// reset forgets all, for a candidate set that looks at some of so many nodes.
func (m *members) reset(nodes, some int) {
	m.list, m.matching, m.able = m.list[:0], 0, 0
	m.byNode = newByNode[uint8](nodes, some)
}

func (m *members) size() int { return len(m.list) }

// isAble reports whether a node is a member that can hold a task of the candidate set.
func (m *members) isAble(i int32) bool { return m.get(i)&isAble != 0 }

// put notes whether a node matches, and is able.
func (m *members) put(i int32, as uint8) {
	was := m.get(i)
	is := was&^(isMatching|isAble) | as
	m.matching += int(is&isMatching)/isMatching - int(was&isMatching)/isMatching
	m.able += int(is&isAble)/isAble - int(was&isAble)/isAble
	if is&isMatching != 0 && was&isListed == 0 {
		is |= isListed
		m.list = append(m.list, i)
	}
	if is != was {
		m.set(i, is)
	}
}

// all returns the members that can hold a task of the candidate set.
func (m *members) all(yield func(int32) bool) {
	for _, i := range m.list {
		if m.isAble(i) && !yield(i) {
			return
		}
	}
}
