package loop

// Wake is a signal that there may be something to do. Signals that nobody waits for fold into one, and are found by the
// next wait.
type Wake chan struct{}

// NewWake returns a wake that has not fired.
func NewWake() Wake { return make(Wake, 1) }

// Signal fires the wake. It never blocks.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Take reports whether the wake has fired since it was last waited for or taken. A closed channel has always fired.
func (w Wake) Take() bool {
	select {
	case <-w:
		return true
	default:
		return false
	}
}
