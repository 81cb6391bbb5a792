package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// ids are ids of any characters, also of such that JSON writes longer than they are.
func ids() *rapid.Generator[string] {
	return rapid.StringN(1, 30, 120).Filter(func(s string) bool { return s != "" })
}

func attachments() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		b, err := json.Marshal(map[string]string{"x": rapid.StringN(0, 400, 1200).Draw(t, "x")})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// covers checks that the values carry the items 0..n-1, each once and in order.
func covers(t *rapid.T, list []events.Encoded, n, limit int) {
	at := 0
	for i, e := range list {
		if len(e.Key) == 0 || len(e.Value) > limit {
			t.Fatalf("value %d: key %q, %d bytes of %d", i, e.Key, len(e.Value), limit)
		}
		if e.From != at || e.To < e.From || (e.To == e.From && n > 0) {
			t.Fatalf("value %d carries [%d,%d) after %d of %d", i, e.From, e.To, at, n)
		}
		at = e.To
	}
	if at != n {
		t.Fatalf("%d of %d items are carried", at, n)
	}
}

// tooLarge checks that the refusal was right: some item alone, or the event without items, comes near the limit. The
// encoders leave room for the longest id, written in its longest form, in every value.
func tooLarge(t *rapid.T, limit, items int, alone func(i int) ([]events.Encoded, error)) {
	const longestID = 6 * 120
	for i := range max(items, 1) {
		list, err := alone(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if len(e.Value)+longestID > limit {
				return
			}
		}
	}
	t.Fatalf("%d items are refused under a limit of %d, each alone fits easily", items, limit)
}

func TestAssignSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(200, 8000).Draw(t, "limit")
		a := events.Assign{CreateDateTime: 1, UpdateDateTime: 2, Acknowledged: rapid.SliceOfN(ids(), 0, 5).Draw(t, "settled"), RoundRobinCount: 9}
		a.SetSender(ids().Draw(t, "controller"), 3)
		a.SetRecipient(ids().Draw(t, "node"), ids().Draw(t, "incarnation"))
		for i, id := range rapid.SliceOfN(ids(), 0, 40).Draw(t, "tasks") {
			a.Tasks = append(a.Tasks, events.AssignedTask{
				ID: id, ClassName: "c", Attempt: 1, ClaimID: fmt.Sprint(i), Attachments: attachments().Draw(t, "attachments"),
			})
		}
		list, err := events.EncodeAssign(a, limit)
		if errors.Is(err, events.ErrTooLarge) {
			alone := a
			tooLarge(t, limit, len(a.Tasks), func(i int) ([]events.Encoded, error) {
				alone.Tasks = a.Tasks[min(i, len(a.Tasks)):min(i+1, len(a.Tasks))]
				return events.EncodeAssign(alone, 1<<20)
			})
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		covers(t, list, len(a.Tasks), limit)
		var tasks []events.AssignedTask
		var settled []string
		for _, e := range list {
			part, err := events.DecodeAssign(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			if len(part.TaskIDs) != len(part.Tasks) || part.ID != string(e.Key) || part.Recipient != a.Recipient || part.Term != 3 || part.RoundRobinCount != 9 {
				t.Fatalf("part %+v of key %q", part, e.Key)
			}
			tasks, settled = append(tasks, part.Tasks...), append(settled, part.Acknowledged...)
		}
		if !reflect.DeepEqual(tasks, a.Tasks) {
			t.Fatalf("tasks became\n%+v\nwant\n%+v", tasks, a.Tasks)
		}
		if len(settled) != len(a.Acknowledged) || (len(settled) > 0 && !reflect.DeepEqual(settled, a.Acknowledged)) {
			t.Fatalf("settled became %q, want %q", settled, a.Acknowledged)
		}
	})
}

func TestStatusSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(200, 8000).Draw(t, "limit")
		s := events.Status{Node: ids().Draw(t, "node"), Incarnation: "i", At: 1, Notice: events.NoticeJoined}
		for i, id := range rapid.SliceOfN(ids(), 0, 40).Draw(t, "reports") {
			s.Reports = append(s.Reports, task.Report{
				ID: id, Attempt: 1, ClaimID: fmt.Sprint(i), Kind: task.ReportFinished, FinishedAt: 1, Result: attachments().Draw(t, "result"),
			})
		}
		list, err := events.EncodeStatus(s, limit)
		if errors.Is(err, events.ErrTooLarge) {
			alone := s
			tooLarge(t, limit, len(s.Reports), func(i int) ([]events.Encoded, error) {
				alone.Reports = s.Reports[min(i, len(s.Reports)):min(i+1, len(s.Reports))]
				return events.EncodeStatus(alone, 1<<20)
			})
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		covers(t, list, len(s.Reports), limit)
		var reports []task.Report
		for i, e := range list {
			part, err := events.DecodeStatus(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			if (part.Notice != "") != (i == 0) {
				t.Fatalf("value %d has the notice %q", i, part.Notice)
			}
			reports = append(reports, part.Reports...)
		}
		if !reflect.DeepEqual(reports, s.Reports) {
			t.Fatalf("reports became\n%+v\nwant\n%+v", reports, s.Reports)
		}
	})
}

func TestControlSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(200, 200_000).Draw(t, "limit")
		c := events.Control{Term: 1, Initiator: "x", Recipient: ids().Draw(t, "node"), Incarnation: "i"}
		for i := range rapid.IntRange(0, 2500).Draw(t, "commands") {
			c.Commands = append(c.Commands, events.Command{Kind: events.CommandCancel, ID: fmt.Sprint("t", i), Attempt: 1, ClaimID: fmt.Sprint("c", i)})
			if i%100 == 7 {
				last := &c.Commands[i]
				last.Kind, last.Attachments, last.AttachmentsVersion = events.CommandUpdate, quoted(rapid.IntRange(2, 20_000).Draw(t, "size")), 1
			}
		}
		list, err := events.EncodeControl(c, limit)
		if errors.Is(err, events.ErrTooLarge) {
			alone := c
			tooLarge(t, limit, len(c.Commands), func(i int) ([]events.Encoded, error) {
				alone.Commands = c.Commands[min(i, len(c.Commands)):min(i+1, len(c.Commands))]
				return events.EncodeControl(alone, 1<<20)
			})
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		covers(t, list, len(c.Commands), limit)
		var commands []events.Command
		for _, e := range list {
			part, err := events.DecodeControl(e.Value)
			if err != nil || len(part.Commands) > 1000 {
				t.Fatalf("%d commands, %v", len(part.Commands), err)
			}
			commands = append(commands, part.Commands...)
		}
		if !reflect.DeepEqual(commands, c.Commands) {
			t.Fatal("the commands changed")
		}
	})
}

// TestC81_EventsStayUnderTheLimit: the largest attachments and results that are let in always find room.
func TestC81_EventsStayUnderTheLimit(t *testing.T) {
	t.Parallel()
	large := quoted(256<<10 - 2)
	a, s := sampleAssign(), sampleStatus()
	a.Tasks, s.Reports = nil, nil
	for i := range 20 {
		a.Tasks = append(a.Tasks, events.AssignedTask{ID: fmt.Sprint("t", i), ClassName: "c", Attempt: 1, ClaimID: "c", Attachments: large})
		s.Reports = append(s.Reports, task.Report{ID: fmt.Sprint("t", i), Attempt: 1, ClaimID: "c", Kind: task.ReportFinished, Result: large})
	}
	assigns, err := events.EncodeAssign(a, events.DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	statuses, err := events.EncodeStatus(s, events.DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	checkValues(t, append(assigns, statuses...), events.DefaultMaxBytes)
	if len(assigns) != 7 || len(statuses) != 7 {
		t.Errorf("%d and %d values for 20 items of 256 KiB, want 7 of 3 each", len(assigns), len(statuses))
	}
	a.Tasks[0].Attachments = quoted(1 << 20)
	if _, err := events.EncodeAssign(a, events.DefaultMaxBytes); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("1 MiB of attachments: %v", err)
	}
	a.Tasks, a.Acknowledged = nil, make([]string, 2001)
	if _, err := events.EncodeAssign(a, events.DefaultMaxBytes); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("2001 settled claims: %v", err)
	}
	a.Acknowledged, a.Heartbeats = nil, make([]events.ConfirmedHeartbeat, events.MaxHeartbeats+1)
	if _, err := events.EncodeAssign(a, events.DefaultMaxBytes); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("%d heartbeats: %v", len(a.Heartbeats), err)
	}
	if _, err := events.EncodeAssign(announcement(), 50); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("an announcement over the limit: %v", err)
	}
}

// quoted is a JSON string of n characters.
func quoted(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }

func BenchmarkEncodeAssign(b *testing.B) {
	a := sampleAssign()
	a.Tasks = nil
	for i := range 500 {
		a.Tasks = append(a.Tasks, events.AssignedTask{
			ID: fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i), ClassName: "demo.echo", Attempt: 1,
			ClaimID: fmt.Sprintf("0198c0de-0000-7000-9000-%012d", i), Attachments: json.RawMessage(`{"x":1}`),
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.EncodeAssign(a, events.DefaultMaxBytes); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*500), "ns/task")
}

// TestAssignSplitOfIDsThatGrow: ids whose characters take six bytes each in JSON, in the task, in taskIds and as the
// event's id.
func TestAssignSplitOfIDsThatGrow(t *testing.T) {
	t.Parallel()
	for name, char := range map[string]string{"control": "\x01", "not UTF-8": "\xff", "line separator": "\u2028", "quote": `"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := sampleAssign()
			a.Tasks = nil
			for i := range 60 {
				a.Tasks = append(a.Tasks, events.AssignedTask{ID: strings.Repeat(char, 100-i), ClassName: "c", Attempt: 1, ClaimID: "c"})
			}
			for limit := 2500; limit < 8000; limit += 97 {
				list, err := events.EncodeAssign(a, limit)
				if err != nil || len(list) < 2 {
					t.Fatalf("limit %d: %d values, %v", limit, len(list), err)
				}
				checkValues(t, list, limit)
			}
		})
	}
}
