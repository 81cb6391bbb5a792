package config

import "time"

// Liveness is what nodes and controller must agree on: when a node counts as
// lost, and when a node that nobody confirms stops its own work before that.
// The values of a controller and of its nodes must be the same.
type Liveness struct {
	// HeartbeatInterval is how often a node writes its heartbeat.
	HeartbeatInterval time.Duration `envconfig:"NODE_HEARTBEAT_INTERVAL" default:"1s" range:"50ms..10s"`
	// LostAfter is how long after its last confirmed heartbeat a node counts as
	// lost. The controller waits 10 % longer before it gives the work away.
	LostAfter time.Duration `envconfig:"NODE_LOST_AFTER" alias:"MONITOR_HEARTBEAT_TIMEOUT" default:"8s" range:"200ms..10m"`
	// StopMargin is how long before LostAfter a node that is not confirmed stops
	// its work: the time that a handler has to return.
	StopMargin time.Duration `envconfig:"NODE_STOP_MARGIN" default:"1s" range:"10ms..5m"`
}

// rules returns the problems that show only in several fields together. Three
// heartbeats must fit into the time that a node trusts itself, so that one or
// two late ones stop nothing.
func (l Liveness) rules() []Problem {
	switch {
	case l.StopMargin >= l.LostAfter:
		return []Problem{{
			"NODE_STOP_MARGIN", l.StopMargin.String(), "less than NODE_LOST_AFTER (" + l.LostAfter.String() + ")",
		}}
	case 3*l.HeartbeatInterval > l.LostAfter-l.StopMargin:
		return []Problem{{
			"NODE_HEARTBEAT_INTERVAL", l.HeartbeatInterval.String(),
			"at most a third of NODE_LOST_AFTER less NODE_STOP_MARGIN (" + (l.LostAfter - l.StopMargin).String() + ")",
		}}
	default:
		return nil
	}
}
