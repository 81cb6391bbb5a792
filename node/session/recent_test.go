package session

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRecent[int](5)
		for _, k := range rapid.SliceOf(rapid.IntRange(0, 12)).Draw(t, "keys") {
			if k > 10 {
				r.remove(k - 8)
				if r.has(k - 8) {
					t.Fatal("taken and there")
				}
				continue
			}
			r.add(k)
			if !r.has(k) || len(r.place) > 5 || len(r.ring) > 5 {
				t.Fatalf("after %d: %+v", k, r)
			}
		}
	})
}
