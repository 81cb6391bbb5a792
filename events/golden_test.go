package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/pkg/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sampleAssign() events.Assign {
	a := events.Assign{
		CreateDateTime: 1796010399380, UpdateDateTime: 1796010399380,
		Tasks: []events.AssignedTask{
			{
				ID: "sample-task-1", ClassName: "SleepWorker", Attempt: 1, ClaimID: "claim-1", Priority: 10,
				CreateDateTime: 1796010393269, Attachments: json.RawMessage(`{"totalSeconds":3600.0,"text":"<ä&\u2028>"}`),
			},
			{ID: "sample-task-2", ClassName: "EchoWorker", Attempt: 3, ClaimID: "claim-2", CreateDateTime: 1796010393270, Slots: 4},
		},
		Acknowledged: []string{"claim-0"}, RoundRobinCount: 12,
	}
	a.SetSender("controller-1", 7)
	a.SetRecipient("sample-node-1", "incarnation-1")
	return a
}

func announcement() events.Assign {
	a := events.Assign{CreateDateTime: 1796010399380, UpdateDateTime: 1796010399380}
	a.SetSender("controller-1", 8)
	return a
}

func sampleControl() events.Control {
	return events.Control{
		Term: 7, Initiator: "controller-1", Recipient: "sample-node-1", Incarnation: "incarnation-1", CreateDateTime: 1796010418751,
		Commands: []events.Command{{Kind: events.CommandCancel, ID: "sample-task-1", Attempt: 1, ClaimID: "claim-1"}},
	}
}

func confirmation() events.Assign {
	a := announcement()
	a.Heartbeats = []events.ConfirmedHeartbeat{{Incarnation: "incarnation-1", Counter: 41}, {Incarnation: "incarnation-2", Counter: 7}}
	return a
}

// commands is a control event with commands of every kind.
func commands() events.Control {
	c := sampleControl()
	c.Drain = new(true)
	c.Commands = []events.Command{
		{Kind: events.CommandPause, ID: "sample-task-1", Attempt: 1, ClaimID: "c1"}, {Kind: events.CommandResume, ID: "t2", Attempt: 2, ClaimID: "c2"},
		{Kind: events.CommandUpdate, ID: "t3", Attempt: 1, ClaimID: "c3", Attachments: json.RawMessage(`{"totalSeconds":2.0}`), AttachmentsVersion: 4},
	}
	return c
}

// undrain is a control event without commands.
func undrain() events.Control {
	c := sampleControl()
	c.Drain, c.Commands = new(bool), nil
	return c
}

func fence() events.Control {
	c := sampleControl()
	c.Fence, c.Commands = true, nil
	return c
}

func sampleHeartbeat() events.Status {
	return events.Status{
		Node: "sample-node-1", Incarnation: "incarnation-1", At: 1796010411389, Counter: 41,
		Heartbeat: &registry.Node{
			ID: "sample-node-1", Incarnation: "incarnation-1", Counter: 41, Term: 8, Mode: "node", State: "online", Classes: []string{"SleepWorker"}, Labels: map[string]string{"zone": "a"},
			Capacity: 16, Prefetch: 8, Running: 3, Queued: 2, Received: 10, Finished: 5, Partition: 3, Protocol: 1, Address: "host-1",
			Version: "1.2.3", CPU: 0.5, Memory: 1 << 20, StartedAt: 1796010393269, RoundRobinCount: 12,
			CapacityByClass: map[string]int{"SleepWorker": 4}, RunningByClass: map[string]int{"SleepWorker": 3}, SlotsRunning: 3, SlotsQueued: 4,
			CPUs: 8, MemoryTotal: 1 << 34,
		},
	}
}

func sampleStatus() events.Status {
	return events.Status{
		Node: "sample-node-1", Incarnation: "incarnation-1", At: 1796010411389, Counter: 12,
		Reports: []task.Report{
			{ID: "t1", Attempt: 1, ClaimID: "c1", Kind: task.ReportStarted, StartedAt: 1796010411380},
			{
				ID: "t2", Attempt: 1, ClaimID: "c2", Kind: task.ReportProgress, StartedAt: 1796010411380,
				Progress: &task.Progress{Percent: 12.5, Message: "half of a quarter"},
			},
			{
				ID: "t3", Attempt: 2, ClaimID: "c3", Kind: task.ReportFinished, StartedAt: 1796010411380, FinishedAt: 1796010411381,
				Result: json.RawMessage(`{"x":1}`),
			},
			{
				ID: "t4", Attempt: 2, ClaimID: "c4", Kind: task.ReportFailed, StartedAt: 1796010411380, FinishedAt: 1796010411381,
				Error: "no such <file>",
			},
			{ID: "t5", Attempt: 1, ClaimID: "c5", Kind: task.ReportCancelled, FinishedAt: 1796010411381},
			{ID: "t6", Attempt: 1, ClaimID: "c6", Kind: task.ReportRejected, Error: "no handler for class \"Nobody\""},
			{ID: "t7", Attempt: 1, ClaimID: "c7", Kind: task.ReportReleased},
		},
	}
}

// decodeQuarantine is how any JSON reader takes a quarantined record.
func decodeQuarantine(value []byte) (q events.Quarantine, err error) {
	err = json.Unmarshal(value, &q)
	return q, err
}

func sampleQuarantine() events.Quarantine {
	return events.Quarantine{
		Topic: events.TopicAssign, Partition: 3, Offset: 42, Reason: "malformed event", At: 1796010411389,
		Key: []byte("k"), Value: []byte{0xff, 0x00, '{'},
	}
}

// one fails the test unless the encoder gave exactly one value.
func one(t *testing.T) func([]events.Encoded, error) events.Encoded {
	return func(list []events.Encoded, err error) events.Encoded {
		t.Helper()
		if err != nil || len(list) != 1 {
			t.Fatalf("%d values, error %v", len(list), err)
		}
		return list[0]
	}
}

// decoder gives a decoder's value as any.
func decoder[T any](decode func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		v, err := decode(b)
		return v, err
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	assign, announce, control, status := sampleAssign(), announcement(), sampleControl(), sampleStatus()
	notice := events.Status{Node: "sample-node-1", Incarnation: "incarnation-1", At: 1796010411389, Notice: events.NoticeJoined}
	quarantined, err := events.EncodeQuarantine(sampleQuarantine())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		encoded events.Encoded
		key     string
		decode  func([]byte) (any, error)
		want    func(got any) any // what the decoder must give
	}{
		"assign": {
			one(t)(events.EncodeAssign(assign, events.DefaultMaxBytes)), "sample-task-1", decoder(events.DecodeAssign),
			func(any) any {
				w := assign
				w.ID, w.TaskIDs, w.Version = "sample-task-1", []string{"sample-task-1", "sample-task-2"}, events.Version
				return w
			},
		},
		"announcement": {
			one(t)(events.EncodeAssign(announce, events.DefaultMaxBytes)), "controller-1", decoder(events.DecodeAssign),
			func(any) any {
				w := announce
				w.ID, w.TaskIDs, w.Version = "controller-1", []string{}, events.Version
				return w
			},
		},
		"control": {
			one(t)(events.EncodeControl(control, events.DefaultMaxBytes)), "sample-task-1", decoder(events.DecodeControl),
			func(any) any { w := control; w.Version = events.Version; return w },
		},
		"confirmation": {
			one(t)(events.EncodeAssign(confirmation(), events.DefaultMaxBytes)), "controller-1", decoder(events.DecodeAssign),
			func(any) any {
				w := confirmation()
				w.ID, w.TaskIDs, w.Version = "controller-1", []string{}, events.Version
				return w
			},
		},
		"fence": {
			one(t)(events.EncodeControl(fence(), events.DefaultMaxBytes)), "sample-node-1", decoder(events.DecodeControl),
			func(any) any { w := fence(); w.Version, w.Commands = events.Version, []events.Command{}; return w },
		},
		"commands": {
			one(t)(events.EncodeControl(commands(), events.DefaultMaxBytes)), "sample-task-1", decoder(events.DecodeControl),
			func(any) any { w := commands(); w.Version = events.Version; return w },
		},
		"undrain": {
			one(t)(events.EncodeControl(undrain(), events.DefaultMaxBytes)), "sample-node-1", decoder(events.DecodeControl),
			func(any) any { w := undrain(); w.Version, w.Commands = events.Version, []events.Command{}; return w },
		},
		"heartbeat": {
			one(t)(events.EncodeStatus(sampleHeartbeat(), events.DefaultMaxBytes)), "sample-node-1", decoder(events.DecodeStatus),
			func(any) any { w := sampleHeartbeat(); w.Version = events.Version; return w },
		},
		"status": {
			one(t)(events.EncodeStatus(status, events.DefaultMaxBytes)), "t1", decoder(events.DecodeStatus),
			func(any) any { w := status; w.Version = events.Version; return w },
		},
		"notice": {
			one(t)(events.EncodeStatus(notice, events.DefaultMaxBytes)), "sample-node-1", decoder(events.DecodeStatus),
			func(any) any { w := notice; w.Version = events.Version; return w },
		},
		"quarantine": {
			quarantined, "task.assign/3/42", decoder(decodeQuarantine),
			func(any) any { w := sampleQuarantine(); w.Version, w.Size = events.Version, 3; return w },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if string(tc.encoded.Key) != tc.key {
				t.Errorf("key %q, want %q", tc.encoded.Key, tc.key)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, tc.encoded.Value, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(golden, tc.encoded.Value) {
				t.Errorf("encoded\n%s\nwant\n%s", tc.encoded.Value, golden)
			}
			got, err := tc.decode(golden)
			if err != nil {
				t.Fatal(err)
			}
			if want := tc.want(got); !reflect.DeepEqual(got, want) {
				t.Errorf("decoded\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// Every field of a heartbeat travels, but for the task list.
func TestHeartbeatIsWhole(t *testing.T) {
	t.Parallel()
	want := registrytest.Example("n1", "i1", 7)
	e := one(t)(events.EncodeStatus(events.Status{Node: "n1", Incarnation: "i1", Heartbeat: want}, events.DefaultMaxBytes))
	if len(want.Tasks) == 0 {
		t.Error("the caller's heartbeat was changed")
	}
	want.Tasks = nil
	if got, err := events.DecodeStatus(e.Value); err != nil || !reflect.DeepEqual(got.Heartbeat, want) {
		t.Errorf("read as %+v\nwant %+v, %v", got.Heartbeat, want, err)
	}
}

// What writers before 0.1 wrote under other names is read as if they had written today's.
func TestOldNamesAreRead(t *testing.T) {
	t.Parallel()
	for name, decode := range map[string]func([]byte) (any, error){
		"assign": decoder(events.DecodeAssign), "confirmation": decoder(events.DecodeAssign), "heartbeat": decoder(events.DecodeStatus),
	} {
		old, err := os.ReadFile(filepath.Join("testdata", "old", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		today, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(old)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := decode(today); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read as\n%+v\nwant\n%+v, %v", name, got, want, err)
		}
	}
}

// pythonTaskEvent is the Python Skalds' TaskEvent as its parser takes it: every field but the dates and the ids may be
// null, other fields are ignored, and the types are not converted.
type pythonTaskEvent struct {
	ID             *string   `json:"id"`
	Title          *string   `json:"title"`
	Initiator      *string   `json:"initiator"`
	Recipient      *string   `json:"recipient"`
	CreateDateTime *int64    `json:"createDateTime"`
	UpdateDateTime *int64    `json:"updateDateTime"`
	TaskIDs        *[]string `json:"taskIds"`
}

func python(t *testing.T, value []byte) pythonTaskEvent {
	t.Helper()
	var e pythonTaskEvent
	if err := json.Unmarshal(value, &e); err != nil {
		t.Fatalf("the Python package cannot read it: %v\n%s", err, value)
	}
	if e.CreateDateTime == nil || e.UpdateDateTime == nil || e.TaskIDs == nil {
		t.Fatalf("the Python package lacks a field in it:\n%s", value)
	}
	return e
}

// keys are the names of an object's fields, in their order.
func keys(t *testing.T, value []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(value))
	var list []string
	for depth, name := 0, true; ; {
		tok, err := dec.Token()
		if err != nil {
			return list
		}
		if d, ok := tok.(json.Delim); ok {
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
			name = true
			continue
		}
		if depth == 1 && name {
			list = append(list, tok.(string))
		}
		name = depth != 1 || !name
	}
}

func TestPythonReadsAssign(t *testing.T) {
	t.Parallel()
	theirs, err := os.ReadFile("testdata/python/task.assign.value")
	if err != nil {
		t.Fatal(err)
	}
	want := keys(t, theirs)
	for name, a := range map[string]events.Assign{"tasks": sampleAssign(), "announcement": announcement()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := one(t)(events.EncodeAssign(a, events.DefaultMaxBytes))
			got := python(t, e.Value)
			if len(*got.TaskIDs) != len(a.Tasks) || (len(a.Tasks) > 0 && ((*got.TaskIDs)[0] != string(e.Key) || *got.ID != string(e.Key))) {
				t.Errorf("read as %+v with key %q", got, e.Key)
			}
			if got.Title != nil {
				t.Errorf("title %q, the Python package writes null", *got.Title)
			}
			if have := keys(t, e.Value); len(have) < len(want) || !reflect.DeepEqual(have[:len(want)], want) {
				t.Errorf("fields %v, want them to begin with %v", have, want)
			}
		})
	}
}

func TestPythonSamplesAreRefusedClearly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/python/*.value")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		value, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, decode := range map[string]func([]byte) (any, error){
			"assign": decoder(events.DecodeAssign), "control": decoder(events.DecodeControl), "status": decoder(events.DecodeStatus),
		} {
			if _, err := decode(value); !errors.Is(err, events.ErrVersion) || !strings.Contains(err.Error(), "it names none") {
				t.Errorf("%s read as %s: %v", file, name, err)
			}
		}
	}
}
