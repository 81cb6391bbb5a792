package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
)

const inQueue = fromWaiting + " = 0"

var (
	nextInQueue = "SELECT queue, created, id, n" + inQueue + " AND (queue, created, id) > (?, ?, ?) ORDER BY queue, created, id LIMIT 1"
	nextQueue   = "SELECT queue, created, id, n" + inQueue + " AND queue > ? ORDER BY queue, created, id LIMIT 1"

	countQueues = "SELECT queue, count(*)" + inQueue + " AND queue > ? GROUP BY queue ORDER BY queue LIMIT ?"
)

// Queues implements store.Queues. It goes from queue to queue by the index, and within one past those that are taken;
// it reads no task, so Bad is always empty.
func (s *Store) Queues(ctx context.Context, after string, limit int) (store.QueuePage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.QueuePage{}, fmt.Errorf("sqlite: queues: %w", err)
	}
	taken := s.recent.taken()
	var page store.QueuePage
	err := s.snapshot(ctx, "list the queues", func(c *conn) error {
		var queue string
		var found []waiter
		take := func(row []driver.Value) error {
			c := cells(row)
			queue = c.text()
			found = append(found[:0], waiter{at: store.Place{CreateDateTime: c.int(), ID: c.text()}, n: c.int()})
			return nil
		}
		err := c.query(nextQueue, take, after)
		for err == nil && len(found) > 0 {
			s.recent.find(found)
			head := found[0]
			found = found[:0]
			switch {
			case !head.waits(taken):
				err = c.query(nextInQueue, take, queue, head.at.CreateDateTime, head.at.ID)
			case len(page.Names) == limit:
				page.More = true
				return nil
			default:
				page.Names = append(page.Names, queue)
				err = c.query(nextQueue, take, queue)
			}
		}
		return err
	})
	return page, err
}

// Depths implements store.Queues.
func (s *Store) Depths(ctx context.Context, after string, limit int) (map[string]int64, error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, fmt.Errorf("sqlite: depths: %w", err)
	}
	depths := map[string]int64{}
	err := s.readTasks(ctx, "count what waits", func(c *conn) error {
		return c.search(ctx, countQueues, func(row []driver.Value) error {
			c := cells(row)
			depths[c.text()] = c.int()
			return nil
		}, after, int64(limit))
	})
	return depths, err
}
