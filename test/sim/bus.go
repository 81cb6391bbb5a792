package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// broker is Kafka: logs that may lose their tail, or be made anew.
type broker struct {
	world  *world
	net    *net
	check  *checker
	topics map[string][]*partition
	serial uint64
	double int  // of 1000 publishes so many are written twice
	spoil  bool // what comes next to task.control is lost again
}

type partition struct {
	records []kafka.Record
	serials []uint64  // of each record; they stand for the check of a position
	waiting []*thread // of readers that have read all
}

func newBroker(w *world, n *net, c *checker, partitions int) *broker {
	b := &broker{world: w, net: n, check: c, topics: map[string][]*partition{}}
	for _, t := range events.Topics() {
		count := partitions
		if t.Single {
			count = 1
		}
		for range count {
			b.topics[t.Name] = append(b.topics[t.Name], &partition{})
		}
	}
	return b
}

// lose cuts the log of a partition back to the first n records.
func (b *broker) lose(topic string, index, n int) {
	p := b.topics[topic][index]
	n = min(n, len(p.records))
	b.check.forgot(topic, p.serials[n:])
	p.records, p.serials = p.records[:n:n], p.serials[:n:n]
	b.wake(p)
}

func (b *broker) wake(p *partition) {
	waiting := p.waiting
	p.waiting = nil
	for _, t := range waiting {
		if b.world.signal(t); t.waiting && !t.ended {
			p.waiting = append(p.waiting, t)
		}
	}
}

func (b *broker) partition(topic string, index int) (*partition, error) {
	ps := b.topics[topic]
	if index < 0 || index >= len(ps) {
		return nil, fmt.Errorf("topic %q partition %d: %w", topic, index, kafka.ErrUnknownTopic)
	}
	return ps[index], nil
}

func (b *broker) add(p *partition, index int, r kafka.Record) uint64 {
	b.serial++
	r.Partition, r.Offset = index, int64(len(p.records))
	p.records, p.serials = append(p.records, r), append(p.serials, b.serial)
	return b.serial
}

// seamBus is Kafka as one process sees it.
type seamBus struct {
	*broker
	process *process
}

// Publish makes one try, like that of events/kafka.
func (s *seamBus) Publish(ctx context.Context, topic string, index int, records []kafka.Record) error {
	by := s.process
	err := s.net.call(ctx, busService, func(bool) error {
		p, err := s.partition(topic, index)
		if err != nil {
			return fmt.Errorf("%w: %w", kafka.ErrNotSent, err)
		}
		copies := 1
		if s.world.chance(s.double) {
			copies = 2
		}
		for range copies {
			for _, r := range records {
				s.check.published(by, topic, s.add(p, index, r), r.Value)
			}
		}
		if s.spoil && topic == events.TopicControl {
			s.spoil = false
			s.world.note("fate", "%s, partition %d loses its last record", topic, index)
			s.lose(topic, index, len(p.records)-1)
		}
		s.wake(p)
		return nil
	})
	if err != nil {
		s.world.note(by.name, " publish to %s: %v", topic, err)
	}
	if certain(err) {
		return fmt.Errorf("publish to %s: %w: %w", topic, kafka.ErrNotSent, err)
	}
	return err
}

// Partitions is how many partitions the topic has.
func (s *seamBus) Partitions(ctx context.Context, topic string) (n int, err error) {
	err = s.net.call(ctx, busService, func(bool) error { n = len(s.topics[topic]); return nil })
	return n, err
}

// Offsets are the present ranges.
func (s *seamBus) Offsets(ctx context.Context, topic string, partitions []int) (ranges map[int]kafka.Range, err error) {
	err = s.net.call(ctx, busService, func(bool) error {
		ranges = make(map[int]kafka.Range, len(partitions))
		for _, i := range partitions {
			p, err := s.partition(topic, i)
			if err != nil {
				return err
			}
			ranges[i] = kafka.Range{End: int64(len(p.records))}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ranges, nil
}

// Reader makes a reader of one partition.
func (s *seamBus) Reader(topic string, index int, from kafka.Position) *reader {
	return &reader{bus: s, topic: topic, index: index, at: from}
}

// reader reads one partition, and recovers by itself as that of events/kafka: where its place is gone it begins at the
// earliest record.
type reader struct {
	bus   *seamBus
	topic string
	index int
	at    kafka.Position
}

// Position is the place after the last record that Next returned.
func (r *reader) Position() kafka.Position { return r.at }

// Next waits for records.
func (r *reader) Next(ctx context.Context) ([]kafka.Record, error) {
	w := r.bus.world
	ended := func() bool { return ctx.Err() != nil }
	for {
		if ended() {
			return nil, fmt.Errorf("read topic %q: %w", r.topic, ctx.Err())
		}
		p, err := r.bus.partition(r.topic, r.index)
		if err != nil {
			return nil, err
		}
		l := r.bus.net.link(r.bus.process, busService)
		switch {
		case l.refused || l.cut || l.deaf || w.chance(l.lossy) || w.now < r.bus.process.stalled:
			w.park(w.now+w.between(50_000_000, 300_000_000), ended)
			continue
		case !r.behind(p):
			if !slices.Contains(p.waiting, w.current) {
				p.waiting = append(p.waiting, w.current)
			}
			w.park(never, func() bool { return ended() || r.behind(p) })
			continue
		}
		w.park(w.now+r.bus.net.delay(l), ended)
		if ended() || !r.behind(p) {
			continue
		}
		n := len(p.records) - int(r.at.Offset)
		n = 1 + w.rng.IntN(n)
		from := int(r.at.Offset)
		out := append([]kafka.Record(nil), p.records[from:from+n]...)
		r.at = kafka.Position{Offset: int64(from + n), Check: p.serials[from+n-1]}
		return out, nil
	}
}

// behind reports whether there is something to read, and starts over if the position is gone.
func (r *reader) behind(p *partition) bool {
	end := int64(len(p.records))
	switch at := r.at.Offset; {
	case r.at == kafka.Earliest(), at > end, at > 0 && r.at.Check != 0 && p.serials[at-1] != r.at.Check:
		r.at = kafka.Position{}
	case r.at == kafka.Latest():
		r.at = kafka.Position{Offset: end}
	case at > 0 && r.at.Check == 0:
		r.at.Check = p.serials[at-1]
	}
	return r.at.Offset < end
}
