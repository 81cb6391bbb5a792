// Package interrupt turns SIGINT and SIGTERM into the stages in which a program ends.
//
// Invariants:
//
//   - Each signal is one stage, in the order given; a signal that comes while a stage is at work is the next one.
//   - No signal is lost: after the last stage, a further one does to the process what it does to any.
package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// Watch calls one stage for each SIGINT or SIGTERM from now on. A stage must not block. One that gives false has nothing to do, and leaves
// the signal to the next; what the last leaves, and what comes after it, ends the process as an uncaught signal does.
//
// The function ends the watch; it is to be called once the program has ended in an orderly way, or not at all.
func Watch(stages ...func() bool) (stop func()) {
	signals := make(chan os.Signal, len(stages)+1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for {
			select {
			case s := <-signals:
				taken := false
				for len(stages) > 0 && !taken {
					taken, stages = stages[0](), stages[1:]
				}
				if !taken {
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

// die has a caught signal end the process after all.
func die(s os.Signal) {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return // there is no such system
	}
	if self.Signal(s) != nil { // Windows sends none
		_ = self.Kill()
	}
}
