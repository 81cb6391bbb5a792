package placement

// Flags of a node in a candidate set. The bits from inStage on are one for each stage: the stage's list has the node.
const (
	isListed   = 1 << iota // it is in members.list
	isMatching             // its class and labels match
	isAble                 // and it can hold such a task when it is empty
	inStage
)

// members holds the flags of the nodes in a candidate set.
type members struct {
	list     []int32 // nodes that match or have matched, in the order in which they were found
	matching int
	able     int
	byNode[uint8]
}

// reset removes all members. The candidate set will look at some of the nodes.
func (m *members) reset(nodes, some int) {
	m.list, m.matching, m.able = m.list[:0], 0, 0
	m.byNode = newByNode[uint8](nodes, some)
}

func (m *members) size() int { return len(m.list) }

// isAble reports whether a node is a member that can hold a task of the candidate set.
func (m *members) isAble(i int32) bool { return m.get(i)&isAble != 0 }

// put sets whether a node matches and is able.
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

// all yields the members that can hold a task of the candidate set.
func (m *members) all(yield func(int32) bool) {
	for _, i := range m.list {
		if m.isAble(i) && !yield(i) {
			return
		}
	}
}
