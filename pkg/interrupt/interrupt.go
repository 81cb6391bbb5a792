// Package interrupt turns SIGINT and SIGTERM into stages of the end of a program.
//
// Invariants:
//
//   - Each signal starts one stage, in the given order, also while an earlier stage is still at work.
//   - No signal is lost: after the last stage, a further signal does what it does to any process.
package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// Watch calls one stage for each SIGINT or SIGTERM from now on. A stage must not block. If it has nothing to do, it
// returns false, and the next stage is called. A signal for which no stage is left ends the process as an uncaught
// signal does.
//
// The caller calls stop, once, when the program has ended in an orderly way, or never.
func Watch(stages ...func() bool) (stop func()) {
	signals := make(chan os.Signal, len(stages)+1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for {
			select {
			case s := <-signals:
				handled := false
				for len(stages) > 0 && !handled {
					handled, stages = stages[0](), stages[1:]
				}
				if !handled {
					die(s)
					return
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// die ends the process as if the signal had not been caught.
func die(s os.Signal) {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return // no system fails here
	}
	if self.Signal(s) != nil { // Windows sends none
		_ = self.Kill()
	}
}
