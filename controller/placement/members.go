package placement

// What a pool notes of a node. The bits from inStage on say in which stages' lists it is.
const (
	isListed   = 1 << iota
	isMatching // its class and labels match
	isAble     // and it can hold such a task, when it is empty
	inStage
)

// members is what a pool notes of nodes.
type members struct {
	list     []int32 // nodes that match or have matched, in the order in which they were found
	matching int
	able     int
	dense    []uint8 // by node; used when many of all are looked at
	sparse   map[int32]uint8
}

// reset forgets all, for a pool that looks at some of so many nodes.
func (m *members) reset(nodes, some int) {
	m.list, m.matching, m.able = m.list[:0], 0, 0
	if some >= nodes/16 {
		m.sparse = nil
		if cap(m.dense) < nodes {
			m.dense = make([]uint8, nodes, nodes+nodes/4)
			return
		}
		m.dense = m.dense[:nodes]
		clear(m.dense)
		return
	}
	m.dense = nil
	m.sparse = make(map[int32]uint8, some)
}

func (m *members) size() int { return len(m.list) }

func (m *members) get(i int32) uint8 {
	if m.sparse != nil {
		return m.sparse[i]
	}
	if int(i) < len(m.dense) {
		return m.dense[i]
	}
	return 0
}

func (m *members) set(i int32, bits uint8) {
	if m.sparse != nil {
		m.sparse[i] = bits
		return
	}
	for int(i) >= len(m.dense) {
		m.dense = append(m.dense, 0)
	}
	m.dense[i] = bits
}

// isAble says whether a node is a member that can hold a task of the pool.
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

// all gives the members that can hold a task of the pool.
func (m *members) all(yield func(int32) bool) {
	for _, i := range m.list {
		if m.isAble(i) && !yield(i) {
			return
		}
	}
}
