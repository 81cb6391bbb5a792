package placement

// byNode holds a value for each node: in a slice, or in a map if few nodes have one.
type byNode[T any] struct {
	dense  []T
	sparse map[int32]T
}

// newByNode returns a byNode for values of some of the nodes.
func newByNode[T any](nodes, some int) byNode[T] {
	if some < nodes/16 {
		return byNode[T]{sparse: make(map[int32]T, some)}
	}
	return byNode[T]{dense: make([]T, nodes, nodes+nodes/4)}
}

func (b *byNode[T]) get(i int32) T {
	if int(i) < len(b.dense) {
		return b.dense[i]
	}
	return b.sparse[i]
}

func (b *byNode[T]) set(i int32, v T) {
	if b.sparse != nil {
		b.sparse[i] = v
		return
	}
	for int(i) >= len(b.dense) {
		var zero T
		b.dense = append(b.dense, zero)
	}
	b.dense[i] = v
}
