package transport_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

const limit = 128 << 10

var to = fleet.Target{Key: fleet.Key{Node: "n1", Incarnation: "n1-1"}, Partition: 1}

func setup() (*bustest.Bus, *transport.Kafka) {
	bus := bustest.Skalds(2)
	return bus, transport.NewKafka(bus, "controller-1", limit, func() time.Time { return time.UnixMilli(1_700_000_000_000) })
}

func tasks(n, payload int) []task.Task {
	list := make([]task.Task, n)
	for i := range list {
		list[i] = task.Task{ID: fmt.Sprint("t", i), ClassName: "a", Attempt: 1, ClaimID: fmt.Sprint("c", i),
			Attachments: json.RawMessage(`"` + strings.Repeat("x", payload) + `"`)}
	}
	return list
}

func TestC81_AssignmentsAreSplitBelowTheLimit(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	r := k.Assign(t.Context(), 7, []transport.Batch{{To: to, Tasks: tasks(10, 50<<10)}})
	if r[0].Err != nil || slices.Contains(r[0].Outcomes, transport.NotSent) || slices.Contains(r[0].Outcomes, transport.Unknown) {
		t.Fatalf("%+v", r[0])
	}
	var seen []string
	for _, rec := range bus.Records(events.TopicAssign) {
		if len(rec.Value) > limit {
			t.Errorf("a value of %d bytes, %d at most", len(rec.Value), limit)
		}
		a, err := events.DecodeAssign(rec.Value)
		if err != nil {
			t.Fatal(err)
		}
		if a.Term != 7 || string(a.Recipient) != "n1" || a.Incarnation != "n1-1" || string(a.Initiator) != "controller-1" || rec.Partition != 1 {
			t.Errorf("event %+v in partition %d", a, rec.Partition)
		}
		if string(rec.Key) != a.TaskIDs[0] || !hasHeader(rec, events.HeaderNode, "n1") || !hasHeader(rec, events.HeaderIncarnation, "n1-1") {
			t.Errorf("record key %s, headers %v", rec.Key, rec.Headers)
		}
		for _, one := range a.Tasks {
			seen = append(seen, one.ID)
		}
	}
	if len(seen) != 10 || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != 10 {
		t.Fatalf("tasks %v, want each of the 10 once", seen)
	}
}

func hasHeader(r kafka.Record, key, value string) bool {
	return slices.ContainsFunc(r.Headers, func(h kafka.Header) bool { return h.Key == key && string(h.Value) == value })
}

// A publish that is refused says so; one that may have arrived does not. What was to follow in other events is not
// sent.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		want transport.Outcome
	}{
		"refused":   {fmt.Errorf("dial: %w", kafka.ErrNotSent), transport.NotSent},
		"timed out": {context.DeadlineExceeded, transport.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus, k := setup()
			calls := 0
			bus.Fail(func(context.Context, string, int, []kafka.Record) (bool, error) {
				calls++
				if calls == 2 {
					return false, c.err
				}
				return true, nil
			})
			r := k.Assign(t.Context(), 1, []transport.Batch{{To: to, Tasks: tasks(6, 50<<10)}})[0] // two tasks an event
			want := []transport.Outcome{transport.Sent, transport.Sent, c.want, c.want, transport.NotSent, transport.NotSent}
			if !slices.Equal(r.Outcomes, want) || !errors.Is(r.Err, c.err) {
				t.Errorf("outcomes %v, want %v; error %v", r.Outcomes, want, r.Err)
			}
		})
	}
}

// A task that fits into no event is certainly not sent, and says why; those beside it are sent as if it were not there.
func TestATaskThatFitsIntoNoEventHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attachments string
		want        error
	}{
		"too large":     {`"` + strings.Repeat("x", limit) + `"`, events.ErrTooLarge},
		"not encodable": {`{"a":`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus, k := setup()
			list := tasks(4, 10)
			list[1].Attachments, list[3].Attachments = json.RawMessage(c.attachments), json.RawMessage(c.attachments)
			r := k.Assign(t.Context(), 1, []transport.Batch{{To: to, Tasks: list}})[0]
			want := []transport.Outcome{transport.Sent, transport.NotSent, transport.Sent, transport.NotSent}
			if r.Err != nil || !slices.Equal(r.Outcomes, want) || len(r.Never) != 2 || r.Never[1] == nil || !errors.Is(r.Never[3], cmp.Or(c.want, r.Never[3])) {
				t.Errorf("%+v", r)
			}
			var sent []string
			for _, rec := range bus.Records(events.TopicAssign) {
				a, err := events.DecodeAssign(rec.Value)
				if err != nil {
					t.Fatal(err)
				}
				sent = append(sent, a.TaskIDs...)
			}
			if !slices.Equal(sent, []string{"t0", "t2"}) {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

// A batch of nothing but such tasks publishes nothing.
func TestNothingIsPublishedForTasksThatFitIntoNoEvent(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	r := k.Assign(t.Context(), 1, []transport.Batch{{To: to, Tasks: tasks(1, limit)}})[0]
	if r.Err != nil || !errors.Is(r.Never[0], events.ErrTooLarge) || r.Outcomes[0] != transport.NotSent || len(bus.Records(events.TopicAssign)) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestSettleAndControlNameTheirIncarnation(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	if err := k.Acknowledge(t.Context(), 3, []transport.Acknowledgement{{To: to, Claims: []string{"c1", "c2"}}}); err != nil {
		t.Fatal(err)
	}
	a, err := events.DecodeAssign(bus.Records(events.TopicAssign)[0].Value)
	if err != nil || !slices.Equal(a.Acknowledged, []string{"c1", "c2"}) || a.Incarnation != "n1-1" || len(a.TaskIDs) != 0 {
		t.Errorf("%+v %v", a, err)
	}
	cancel := events.Command{Kind: events.CommandCancel, ID: "t1", Attempt: 1, ClaimID: "c1"}
	if err := k.Control(t.Context(), 3, []transport.Commands{{To: to, Commands: []events.Command{cancel}}}); err != nil {
		t.Fatal(err)
	}
	c, err := events.DecodeControl(bus.Records(events.TopicControl)[0].Value)
	if err != nil || c.Term != 3 || c.Recipient != "n1" || c.Incarnation != "n1-1" || !reflect.DeepEqual(c.Commands, []events.Command{cancel}) {
		t.Errorf("%+v %v", c, err)
	}
}

func TestATermIsAnnouncedOnEveryPartitionToAll(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	if err := errors.Join(k.Announce(t.Context(), 9, []int{0, 1})...); err != nil {
		t.Fatal(err)
	}
	partitions := map[int]bool{}
	for _, rec := range bus.Records(events.TopicAssign) {
		a, err := events.DecodeAssign(rec.Value)
		if err != nil || a.Term != 9 || a.Recipient != "" || len(rec.Headers) != 0 || len(rec.Key) == 0 {
			t.Errorf("%+v %v", a, err)
		}
		partitions[rec.Partition] = true
	}
	if len(partitions) != 2 {
		t.Errorf("partitions %v", partitions)
	}
}

// One partition that takes nothing does not keep the term from the others, and the answer says which one it is.
func TestAnnounceSaysWhereTheTermIs(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	bus.Fail(func(_ context.Context, _ string, partition int, _ []kafka.Record) (bool, error) {
		if partition == 0 {
			return false, kafka.ErrNotSent
		}
		return true, nil
	})
	errs := k.Announce(t.Context(), 9, []int{0, 1})
	if len(errs) != 2 || !errors.Is(errs[0], kafka.ErrNotSent) || errs[1] != nil || len(bus.Records(events.TopicAssign)) != 1 {
		t.Errorf("%v", errs)
	}
}

func TestConfirmationsAreForEveryNodeOfThePartition(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	heartbeats := []events.ConfirmedHeartbeat{{Incarnation: "a", Counter: 3}, {Incarnation: "b", Counter: 4}}
	if err := k.Confirm(t.Context(), 3, []transport.Confirmation{{Partition: 1, Heartbeats: heartbeats}}); err != nil {
		t.Fatal(err)
	}
	rec := bus.Records(events.TopicAssign)[0]
	a, err := events.DecodeAssign(rec.Value)
	if err != nil || a.Term != 3 || a.Recipient != "" || !slices.Equal(a.Heartbeats, heartbeats) || rec.Partition != 1 || len(rec.Headers) != 0 {
		t.Errorf("%+v %v", a, err)
	}
}

func TestAFenceNamesItsIncarnation(t *testing.T) {
	t.Parallel()
	bus, k := setup()
	if err := k.Fence(t.Context(), 3, []fleet.Target{to}); err != nil {
		t.Fatal(err)
	}
	rec := bus.Records(events.TopicControl)[0]
	c, err := events.DecodeControl(rec.Value)
	if err != nil || !c.Fence || c.Term != 3 || c.Recipient != "n1" || c.Incarnation != "n1-1" || rec.Partition != 1 || !hasHeader(rec, events.HeaderNode, "n1") {
		t.Errorf("%+v %v", c, err)
	}
}
