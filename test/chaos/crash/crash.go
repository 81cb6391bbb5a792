// Package crash ends a controller's process at a named place between its calls of the store and the bus.
//
// A place is armed from outside, by its name in the file that CRASH_FILE names; the process that comes to it removes
// the file and is gone with exit code Code, without a word to anybody. What it had called before has its effect;
// nothing after it has.
package crash

import (
	"context"
	"os"
	"strings"
	"sync/atomic"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// FileEnv is the environment variable with the path of the file that arms a place.
const FileEnv = "CRASH_FILE"

// Code is the exit code of a process that has come to the armed place.
const Code = 42

// Point is the name of a place.
type Point string

// The places. Reports are what ingest writes; giving away is the write that takes the tasks of a lost node back.
const (
	BeforeClaim      Point = "before the claim"
	AfterClaim       Point = "after the claim"
	BeforePublish    Point = "before the publish"
	AfterPublish     Point = "after the publish"
	BeforeReports    Point = "before the reports"
	AfterReports     Point = "after the reports"
	BeforePositions  Point = "before the positions"
	AfterPositions   Point = "after the positions"
	BeforeRenewal    Point = "before the renewal"
	AfterRenewal     Point = "after the renewal"
	AfterTakeover    Point = "after the takeover"
	AfterAnnouncing  Point = "after announcing the term"
	BeforeGivingAway Point = "before giving away"
	AfterGivingAway  Point = "after giving away"
)

// Points gives all places.
func Points() []Point {
	return []Point{
		BeforeClaim, AfterClaim, BeforePublish, AfterPublish, BeforeReports, AfterReports, BeforePositions, AfterPositions,
		BeforeRenewal, AfterRenewal, AfterTakeover, AfterAnnouncing, BeforeGivingAway, AfterGivingAway,
	}
}

// Trap is where an armed place ends the process.
type Trap struct{ file string }

// NewTrap makes the trap of this process.
func NewTrap() *Trap { return &Trap{os.Getenv(FileEnv)} }

func (t *Trap) at(p Point) {
	if armed, err := os.ReadFile(t.file); err == nil && strings.TrimSpace(string(armed)) == string(p) {
		_ = os.Remove(t.file)
		os.Exit(Code)
	}
}

// between carries out a call between two places.
func between[T any](t *Trap, before, after Point, call func() (T, error)) (T, error) {
	t.at(before)
	v, err := call()
	t.at(after)
	return v, err
}

// Store puts the places around a store.
type Store struct {
	store.Store

	Trap *Trap
}

var _ store.Store = (*Store)(nil)

// Apply implements store.Tasks.
func (s *Store) Apply(ctx context.Context, changes []task.Change) (int, error) {
	before, after := BeforeReports, AfterReports
	for i := range changes {
		switch c := &changes[i]; {
		case c.Assign != nil:
			before, after = BeforeClaim, AfterClaim
		case c.Run != nil && (c.Run.Outcome == "lost" || c.Run.Outcome == "crashed"):
			before, after = BeforeGivingAway, AfterGivingAway
		}
	}
	if len(changes) == 0 {
		return s.Store.Apply(ctx, changes)
	}
	return between(s.Trap, before, after, func() (int, error) { return s.Store.Apply(ctx, changes) })
}

// SavePositions implements store.Positions.
func (s *Store) SavePositions(ctx context.Context, topic string, positions map[int]store.Position) error {
	_, err := between(s.Trap, BeforePositions, AfterPositions, func() (any, error) { return nil, s.Store.SavePositions(ctx, topic, positions) })
	return err
}

// SwapLeader implements store.Leases.
func (s *Store) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	if old.Term == next.Term {
		return between(s.Trap, BeforeRenewal, AfterRenewal, func() (bool, error) { return s.Store.SwapLeader(ctx, old, next) })
	}
	ok, err := s.Store.SwapLeader(ctx, old, next)
	if ok {
		s.Trap.at(AfterTakeover)
	}
	return ok, err
}

// Bus puts the places around a bus.
type Bus struct {
	controller.Bus

	Trap  *Trap
	Width int // partitions of task.assign

	announced atomic.Int64
}

var _ controller.Bus = (*Bus)(nil)

// Publish implements controller.Bus.
func (b *Bus) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	publish := func() (any, error) { return nil, b.Bus.Publish(ctx, topic, partition, records) }
	var a events.Assign
	var err error
	if topic == events.TopicAssign {
		a, err = events.DecodeAssign(records[0].Value)
	}
	switch {
	case err == nil && len(a.Tasks) > 0:
		_, err = between(b.Trap, BeforePublish, AfterPublish, publish)
	case err == nil && topic == events.TopicAssign && a.Recipient == "" && len(a.Heartbeats) == 0:
		// The last one, whichever it is, completes the announcement.
		if _, err = publish(); err == nil && int(b.announced.Add(1))%b.Width == 0 {
			b.Trap.at(AfterAnnouncing)
		}
	default:
		_, err = publish()
	}
	return err
}
