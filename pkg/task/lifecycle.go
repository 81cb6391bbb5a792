package task

import "strings"

// Status is a task's lifecycleStatus.
type Status string

// The seven values of the Python Skalds.
const (
	Created   Status = "Created"
	Assigning Status = "Assigning"
	Running   Status = "Running"
	Paused    Status = "Paused"
	Finished  Status = "Finished"
	Failed    Status = "Failed"
	Cancelled Status = "Cancelled"
)

// All lists the statuses in the order of a task's life.
func All() []Status {
	return []Status{Created, Assigning, Running, Paused, Finished, Failed, Cancelled}
}

// ParseStatus reads a status without regard to case.
func ParseStatus(s string) (Status, bool) {
	for _, v := range All() {
		if strings.EqualFold(s, string(v)) {
			return v, true
		}
	}
	return "", false
}

// Terminal reports whether the status is an end, which only a retry leaves.
func (s Status) Terminal() bool { return Terminal.Has(s) }

// Active reports whether a node may hold a task of this status.
func (s Status) Active() bool { return s == Assigning || s == Running || s == Paused }

// Event is something that happens to a task.
type Event uint8

const (
	// EventClaim assigns the task to an incarnation of a node.
	EventClaim Event = iota
	// EventUnclaim undoes a claim whose first publish certainly did not happen.
	EventUnclaim
	// EventReject is a node's refusal: it does not know the class, or has no free capacity.
	EventReject
	// EventStart is the start of a handler. A repeated one changes nothing.
	EventStart
	// EventFinish is the success of a handler.
	EventFinish
	// EventFail is a failure that is not retried.
	EventFail
	// EventFailAgain is a failure that is retried.
	EventFailAgain
	// EventRefuse ends a task that no node holds and that can never run: a document that does not decode, a deadline
	// that has passed.
	EventRefuse
	// EventCancel is a cancel that was carried out.
	EventCancel
	// EventRelease is a node's return of a task that it holds.
	EventRelease
	// EventLose takes a task from a lost node.
	EventLose
	// EventPause is a person's pause, carried out; of a task that waits it is a hold. A repeated one changes nothing.
	EventPause
	// EventResume lets a paused task go on where it is; a repeated one changes nothing.
	EventResume
	// EventUnhold lets a paused task that no node holds wait again.
	EventUnhold
	// EventRetry runs an ended task again, as a person has asked.
	EventRetry
	eventCount
)

var eventNames = [eventCount]string{
	"claim", "unclaim", "reject", "start", "finish", "fail", "fail again", "refuse", "cancel",
	"release", "lose", "pause", "resume", "unhold", "retry",
}

func (e Event) String() string {
	if e < eventCount {
		return eventNames[e]
	}
	return "unknown event"
}

// transitions is the life cycle: for each event the statuses it is accepted in, and what they become.
var transitions = [eventCount]map[Status]Status{
	EventClaim:     {Created: Assigning},
	EventUnclaim:   {Assigning: Created},
	EventReject:    {Assigning: Created},
	EventStart:     {Assigning: Running, Running: Running},
	EventFinish:    {Assigning: Finished, Running: Finished, Paused: Finished},
	EventFail:      {Assigning: Failed, Running: Failed, Paused: Failed},
	EventFailAgain: {Assigning: Created, Running: Created, Paused: Paused},
	EventRefuse:    {Created: Failed, Paused: Failed},
	EventCancel:    {Created: Cancelled, Assigning: Cancelled, Running: Cancelled, Paused: Cancelled},
	EventRelease:   {Assigning: Created, Running: Created, Paused: Paused},
	EventLose:      {Assigning: Created, Running: Created, Paused: Paused},
	EventPause:     {Created: Paused, Assigning: Paused, Running: Paused, Paused: Paused},
	EventResume:    {Assigning: Running, Running: Running, Paused: Running},
	EventUnhold:    {Paused: Created},
	EventRetry:     {Finished: Created, Failed: Created, Cancelled: Created},
}

// Next is the one transition function. It returns what a task of status s becomes by e, and whether e is accepted in s.
func Next(s Status, e Event) (Status, bool) {
	if e >= eventCount {
		return s, false
	}
	to, ok := transitions[e][s]
	if !ok {
		return s, false
	}
	return to, true
}

// sources returns the statuses in which e is accepted and leads to the status to.
func sources(e Event, to Status) Statuses {
	var set Statuses
	for from, next := range transitions[e] {
		if next == to {
			set |= from.bit()
		}
	}
	return set
}

// Statuses is a set of statuses.
type Statuses uint8

// Terminal is the set of the statuses that are left only by a retry.
const Terminal = Statuses(1<<4 | 1<<5 | 1<<6)

// Set returns the set of the given statuses. Unknown ones are left out.
func Set(list ...Status) Statuses {
	var set Statuses
	for _, s := range list {
		set |= s.bit()
	}
	return set
}

// Has reports whether s is in the set.
func (set Statuses) Has(s Status) bool { return set&s.bit() != 0 }

// List returns the members in the order of a task's life.
func (set Statuses) List() []Status {
	var list []Status
	for _, s := range All() {
		if set.Has(s) {
			list = append(list, s)
		}
	}
	return list
}

func (s Status) bit() Statuses {
	switch s {
	case Created:
		return 1 << 0
	case Assigning:
		return 1 << 1
	case Running:
		return 1 << 2
	case Paused:
		return 1 << 3
	case Finished:
		return 1 << 4
	case Failed:
		return 1 << 5
	case Cancelled:
		return 1 << 6
	}
	return 0
}
