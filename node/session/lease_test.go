package session

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
)

// hand is a clock that a test moves.
type hand struct {
	clock.Clock
	boot time.Duration
}

func (h *hand) Boot() time.Duration { return h.boot }

// The late answer of a registry does not revive a lease, though nobody has noticed yet that it is over: a process that
// was frozen while it waited.
func TestALateAnswerRevivesNothing(t *testing.T) {
	t.Parallel()
	at, ends := &hand{boot: time.Hour}, 0
	l := lease{clock: at, term: 7 * time.Second, lost: make(loop.Wake), onEnd: func(string) { ends++ }}
	l.confirm(at.boot)
	if !l.begin() || !l.holds() {
		t.Fatal("a lease that was confirmed does not hold")
	}
	at.boot += 8 * time.Second
	l.confirm(at.boot)
	if l.holds() || !l.isLost() || ends != 1 {
		t.Errorf("the session goes on: its work ended %d times", ends)
	}
}
