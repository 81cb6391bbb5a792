package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// notifier tells the leader, wherever it is, that this controller has stored tasks or wishes. Notices fold while one is on its way. One that
// is lost costs time only: the leader polls.
type notifier struct {
	c    *Controller
	wake dispatcher.Wake

	mu      sync.Mutex
	updated map[string]struct{} // tasks whose attachments are new, at most events.MaxUpdated; the leader finds those beyond by itself
}

func newNotifier(c *Controller) *notifier { return &notifier{c: c, wake: dispatcher.NewWake()} }

func (n *notifier) signal() { n.wake.Signal() }

// note has the next notice name a task whose attachments are new.
func (n *notifier) note(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.updated == nil {
		n.updated = make(map[string]struct{})
	}
	if len(n.updated) < events.MaxUpdated {
		n.updated[id] = struct{}{}
	}
}

func (n *notifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := slices.Sorted(maps.Keys(n.updated))
	n.updated = nil
	return ids
}

// noticeTimeout bounds one notice.
const noticeTimeout = 2 * time.Second

func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		if err := n.send(ctx); err != nil && ctx.Err() == nil {
			n.c.deps.Log.Debug("the leader was not told of new tasks; it will find them", "error", err)
		}
	}
}

func (n *notifier) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	notice := events.Status{At: n.c.deps.Clock.Now().UnixMilli(), Notice: events.NoticeSubmitted, Updated: n.take()}
	values, err := events.EncodeStatus(notice, n.c.cfg.EventMaxBytes)
	if err != nil {
		return err
	}
	for _, v := range values {
		if err := n.c.deps.Bus.Publish(ctx, events.TopicStatus, 0, []kafka.Record{{Key: v.Key, Value: v.Value}}); err != nil {
			return err
		}
	}
	return nil
}
