package fleet

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
)

// permitSets are the permits in use, by the name of their concurrency key or pool.
type permitSets map[string]*permitSet

// permitSet is the permits of one name: those that claims hold, and those that somebody else holds, as the store has
// shown.
type permitSet struct {
	held    map[int]int // claims by number; more than one only while the picture is behind the store
	foreign map[int]struct{}
	bits    []uint64 // a bit for each number in either
}

// parsePermit returns the name and the number of a permit. It reports false for a text that is no permit.
func parsePermit(permit string) (name string, n int, ok bool) {
	at := strings.LastIndexByte(permit, '#')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(permit[at+1:])
	return permit[:at], n, err == nil && n >= 0 && n < store.MaxTasks
}

func (p permitSets) of(name string) *permitSet {
	s, ok := p[name]
	if !ok {
		s = &permitSet{held: make(map[int]int)}
		p[name] = s
	}
	return s
}

// count counts a claim's permit as held, or as free again.
func (p permitSets) count(permit string, by int) {
	name, n, ok := parsePermit(permit)
	if !ok {
		return
	}
	s := p.of(name)
	if s.held[n] += by; s.held[n] <= 0 {
		delete(s.held, n)
	}
	p.mark(name, s, n)
}

// addForeign notes that somebody else holds a permit.
func (p permitSets) addForeign(permit string) {
	name, n, ok := parsePermit(permit)
	if !ok {
		return
	}
	s := p.of(name)
	if s.foreign == nil {
		s.foreign = make(map[int]struct{})
	}
	s.foreign[n] = struct{}{}
	p.mark(name, s, n)
}

// forgetForeign frees the permits that others held.
func (p permitSets) forgetForeign() {
	for name, s := range p {
		for n := range s.foreign {
			delete(s.foreign, n)
			p.mark(name, s, n)
		}
	}
}

// mark brings the bit of a number up to date.
func (p permitSets) mark(name string, s *permitSet, n int) {
	_, foreign := s.foreign[n]
	word, bit := n/64, uint64(1)<<(n%64)
	for len(s.bits) <= word {
		s.bits = append(s.bits, 0)
	}
	if s.held[n] > 0 || foreign {
		s.bits[word] |= bit
		return
	}
	s.bits[word] &^= bit
	if len(s.held)+len(s.foreign) == 0 {
		delete(p, name)
	}
}

// free returns the lowest number below the limit that nobody holds.
func (p permitSets) free(name string, limit int) (int, bool) {
	s, ok := p[name]
	if !ok {
		return 0, limit > 0
	}
	for word, used := range s.bits {
		if used != ^uint64(0) {
			n := word*64 + bits.TrailingZeros64(^used)
			return n, n < limit
		}
	}
	n := 64 * len(s.bits)
	return n, n < limit
}

// used returns how many permits of a name are in use.
func (p permitSets) used(name string) int {
	s, ok := p[name]
	if !ok {
		return 0
	}
	n := 0
	for _, word := range s.bits {
		n += bits.OnesCount64(word)
	}
	return n
}
