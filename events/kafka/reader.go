package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// fetchBytes bounds what one Next returns, but for a single batch that is larger by itself.
	fetchBytes = 4 << 20

	// fetchWait is how long a broker holds a fetch while there is nothing to read. It does not delay a record.
	fetchWait = time.Second

	// quickFetch is how soon a fetch that brings nothing may return before it is taken for a broker that does not wait.
	quickFetch = fetchWait / 4

	// outageFailures is the number of failures in a row that makes an outage, which is logged. One or two are what a
	// leader that moves, or a broker that restarts quickly, looks like.
	outageFailures = 3

	offsetEarliest = -2
	offsetLatest   = -1
)

// Position is a place in a partition. It can be stored and given to a new Reader.
type Position struct {
	// Offset of the next record to read.
	Offset int64

	// Check identifies the record before it, so that a reader notices when the partition's log is not the one it was:
	// the topic was deleted and made again, or the log was cut. 0 means unknown.
	Check uint64
}

// Earliest is the place of the first record that a partition has when the reader first reaches it.
func Earliest() Position { return Position{Offset: offsetEarliest} }

// Latest is the end of a partition when the reader first reaches it.
func Latest() Position { return Position{Offset: offsetLatest} }

// Reader reads one partition in order, without a consumer group. Next must not be called twice at the same time;
// Position may be called at any time. It has nothing to close: all it holds, it holds during Next.
type Reader struct {
	client    *Client
	topic     string
	partition int
	log       *slog.Logger

	// These belong to Next.
	next     int64 // what to fetch: the position, or beyond it where the log has marks that are no records
	located  bool  // the position was compared with the log since the last failure
	failures int   // in a row
	spins    int   // fetches in a row that came back early and empty
	outage   time.Time

	mu       sync.Mutex // guards position
	position Position
}

// Reader returns a reader of one partition that begins at from. The topic need not exist yet. A position whose record
// fell out of the log begins at the earliest one.
func (c *Client) Reader(topic string, partition int, from Position) *Reader {
	return &Reader{
		client: c, topic: topic, partition: partition,
		log:      c.cfg.Logger.With("topic", topic, "partition", partition),
		position: from,
	}
}

// Position returns the place after the last record that Next returned, and before the first call the place the reader
// was made with.
func (r *Reader) Position() Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position
}

// Next returns the records that follow, at least one and about 4 MiB at most. It waits for them as long as it takes:
// while no broker can be reached, while the partition has no leader, and while the topic does not exist, it tries
// again with growing pauses, and logs that once for each outage. It returns an error only when the context ended,
// the client was closed (ErrClosed), or the reader was made with an impossible place.
func (r *Reader) Next(ctx context.Context) ([]Record, error) {
	if from := r.Position(); r.partition < 0 || from.Offset < offsetEarliest {
		return nil, fmt.Errorf("read topic %q: partition %d, offset %d: neither may be negative", r.topic, r.partition, from.Offset)
	}
	for {
		if err := r.ended(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		f, err := r.step(ctx)
		var delay time.Duration
		switch {
		case err != nil:
			if ended := r.ended(ctx); ended != nil {
				return nil, ended
			}
			delay = r.failed(ctx, err)
		case len(f.records) > 0:
			r.returned(f)
			return f.records, nil
		default:
			delay = r.empty(f, time.Since(began))
		}
		if delay > 0 {
			if err := r.client.pause(ctx, delay); err != nil {
				return nil, err
			}
		}
	}
}

func (r *Reader) ended(ctx context.Context) error {
	if r.client.life.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}

// step does one fetch, after it made sure that its place in the log is still good.
func (r *Reader) step(ctx context.Context) (fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait+r.client.cfg.Timeout)
	defer cancel()
	ctx, release := r.client.withTimeout(ctx, 0)
	defer release()

	if !r.located {
		if err := r.locate(ctx); err != nil {
			return fetched{}, err
		}
		r.located = true
	}
	f, err := r.client.fetch(ctx, r.topic, r.partition, r.next, fetchBytes, fetchWait)
	if err != nil {
		return fetched{}, err
	}
	if f.end < r.next {
		return fetched{}, fmt.Errorf("the partition ends at offset %d, before the place %d: its log was cut or replaced", f.end, r.next)
	}
	r.recovered()
	return f, nil
}

// locate finds out where to go on: at the same place, if the record before it is still the same one, and otherwise at
// the earliest record.
func (r *Reader) locate(ctx context.Context) error {
	ranges, err := r.client.offsets(ctx, r.topic, []int{r.partition})
	if err != nil {
		return err
	}
	log := ranges[r.partition]
	place := r.Position()
	switch {
	case place.Offset == offsetEarliest:
		place = Position{Offset: log.First}
	case place.Offset == offsetLatest:
		place = Position{Offset: log.End}
	case place.Offset < log.First:
		place = r.restart(log, "records were removed before they were read")
	case place.Offset > log.End:
		place = r.restart(log, "the log was cut or replaced")
	}
	if place.Offset > log.First {
		seen, err := r.checkBefore(ctx, place.Offset)
		if err != nil {
			return err
		}
		if place.Check != 0 && seen != place.Check {
			place = r.restart(log, "the record before the place is another one: the topic was made anew")
		} else {
			place.Check = seen // from now on it is known
		}
	}
	r.next = place.Offset
	r.move(place)
	return nil
}

// checkBefore identifies the record before an offset; 0 when there is none, but a mark of a transaction.
func (r *Reader) checkBefore(ctx context.Context, offset int64) (uint64, error) {
	f, err := r.client.fetch(ctx, r.topic, r.partition, offset-1, 1, 0)
	if err != nil {
		return 0, fmt.Errorf("look at the record before offset %d: %w", offset, err)
	}
	if len(f.records) == 0 || f.records[0].Offset != offset-1 {
		return 0, nil
	}
	return f.records[0].check(), nil
}

func (r *Reader) restart(log Range, why string) Position {
	r.log.Warn("kafka reader lost its place and goes on from the earliest record",
		"place", r.Position().Offset, "earliest", log.First, "end", log.End, "reason", why)
	return Position{Offset: log.First}
}

func (r *Reader) move(to Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = to
}

// returned notes what Next is about to return.
func (r *Reader) returned(f fetched) {
	last := &f.records[len(f.records)-1]
	r.next, r.spins = f.next, 0
	r.move(Position{Offset: last.Offset + 1, Check: last.check()})
}

// empty notes a fetch without records and returns how long to wait before the next one. Usually the broker has waited
// already.
func (r *Reader) empty(f fetched, took time.Duration) time.Duration {
	r.next = f.next
	if took >= quickFetch {
		r.spins = 0
		return 0
	}
	r.spins++
	return backoff(r.spins)
}

// failed notes a failure and returns how long to wait before the next try.
func (r *Reader) failed(ctx context.Context, err error) time.Duration {
	r.client.forget(r.topic, r.partition)
	r.located = false
	if r.failures == 0 {
		r.outage = time.Now()
	}
	r.failures++
	level := slog.LevelDebug
	if r.failures == outageFailures {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "kafka reader cannot read; it goes on trying", "offset", r.next, "error", err)
	return backoff(r.failures)
}

// recovered notes that a fetch was answered.
func (r *Reader) recovered() {
	if r.failures >= outageFailures {
		r.log.Info("kafka reader reads again", "offset", r.next, "failures", r.failures, "after", time.Since(r.outage))
	}
	r.failures = 0
}
