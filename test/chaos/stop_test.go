package chaos_test

import (
	"strings"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM with DRAIN_SOFT and DRAIN_HARD as here, whatever does
// not answer.
const stopGrace = 10 * time.Second

// c37 tells nodes and controllers to stop while the broker is cut off from them, or hangs.
func c37(w *world, prefix string) {
	w.submitAgain(4*nodes, prefix, slow, 60_000, 10)
	w.childrenOf(w.nodes()[0], prefix)
	leader, follower := w.leader(), w.follower()
	for _, m := range []*member{w.nodes()[0], leader} {
		m.links[toKafka].Cut()
	}
	for _, m := range []*member{w.nodes()[1], follower} {
		m.links[toKafka].Stall()
	}
	w.hold(time.Second)
	stopped := []*member{w.nodes()[0], w.nodes()[1], leader, follower}
	began := time.Now()
	for _, m := range stopped {
		m.terminate()
	}
	for _, m := range stopped {
		m.awaitEnd()
		if took := time.Since(began); took > stopGrace {
			w.T.Errorf("%s ended %s after SIGTERM", m.name, took)
		}
		// One that follows needs no broker, and has nothing to say of it.
		reason := m == follower || strings.Contains(strings.ToLower(m.proc.Log()), "kafka")
		if code := m.proc.ExitCode(); code != 0 || !reason {
			w.T.Errorf("%s ended with code %d and said:\n%s", m.name, code, m.proc.Log())
		}
	}
	w.T.Logf("two nodes and two controllers had ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
	w.nodes()[2].kill() // what it runs would run on for long
	w.whole()
	w.check(recoverLimit, prefix)
}
