// Package notice tells the leader, in whichever process it runs, that this controller has stored something. A lost
// notice costs only time: the leader looks into the store every few seconds.
package notice

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
)

// Publisher is the part of the bus that a notifier uses.
type Publisher interface {
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
}

// Notifier sends notices over task.status. Calls that come while a notice is being sent are part of the next one. It is
// safe for concurrent use.
type Notifier struct {
	bus   Publisher
	clock clock.Clock
	limit int
	wake  loop.Wake

	mu      sync.Mutex
	updated map[string]struct{} // tasks with new attachments; the leader finds those beyond events.MaxUpdated by itself
}

// New returns a notifier. Limit is EVENT_MAX_BYTES.
func New(bus Publisher, c clock.Clock, limit int) *Notifier {
	return &Notifier{bus: bus, clock: c, limit: limit, wake: loop.NewWake(), updated: make(map[string]struct{})}
}

// Stored tells the leader, without blocking, that tasks or desired states were stored.
func (n *Notifier) Stored() { n.wake.Signal() }

// Updated adds a task with new attachments to the next notice. A call of Stored must follow.
func (n *Notifier) Updated(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.updated) < events.MaxUpdated {
		n.updated[id] = struct{}{}
	}
}

func (n *Notifier) drainUpdated() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := slices.Sorted(maps.Keys(n.updated))
	clear(n.updated)
	return ids
}

// timeout bounds one notice.
const timeout = 2 * time.Second

// Loop returns the loop that sends notices.
func (n *Notifier) Loop() loop.Loop {
	return loop.Loop{
		Name:     "notice",
		Wakes:    []loop.Wake{n.wake},
		First:    loop.OnWake(),
		Deadline: timeout,
		Failure:  "the leader was not told of new tasks; it will find them by itself",
		Quiet:    true,
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			return loop.OnWake().Regardless(), n.send(ctx)
		},
	}
}

func (n *Notifier) send(ctx context.Context) error {
	notice := events.Status{At: n.clock.Now().UnixMilli(), Notice: events.NoticeSubmitted, Updated: n.drainUpdated()}
	values, err := events.EncodeStatus(notice, n.limit)
	if err != nil {
		return err
	}
	for _, v := range values {
		if err := n.bus.Publish(ctx, events.TopicStatus, 0, []kafka.Record{{Key: v.Key, Value: v.Value}}); err != nil {
			return err
		}
	}
	return nil
}
