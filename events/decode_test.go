package events_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	assign, control := decoder(events.DecodeAssign), decoder(events.DecodeControl)
	status := decoder(events.DecodeStatus)
	for name, tc := range map[string]struct {
		decode func([]byte) (any, error)
		value  string
		want   error
		text   string
	}{
		"empty":                   {assign, ``, events.ErrMalformed, ""},
		"no JSON":                 {control, `{]`, events.ErrMalformed, ""},
		"another type":            {status, `[1]`, events.ErrMalformed, ""},
		"null":                    {status, `null`, events.ErrVersion, "names none"},
		"two values":              {status, `{"version":1}{"version":1}`, events.ErrMalformed, ""},
		"no version":              {status, `{}`, events.ErrVersion, "names none"},
		"a later version":         {assign, `{"version":2}`, events.ErrVersion, "version 2"},
		"a later version's types": {assign, `{"version":2,"tasks":"elsewhere"}`, events.ErrVersion, "version 2"},
		"a bad version":           {assign, `{"version":"1"}`, events.ErrMalformed, ""},
		"a negative version":      {assign, `{"version":-1}`, events.ErrVersion, "version -1"},
		"a task without a claim": {
			assign, `{"version":1,"recipient":"n","incarnation":"i","tasks":[{"id":"t","className":"c","attempt":1}]}`,
			events.ErrMalformed, "claimId",
		},
		"a task of attempt 0": {
			assign, `{"version":1,"recipient":"n","incarnation":"i","tasks":[{"id":"t","className":"c","claimId":"c"}]}`,
			events.ErrMalformed, "attempt 0",
		},
		"tasks for nobody": {
			assign, `{"version":1,"tasks":[{"id":"t","className":"c","claimId":"c","attempt":1}]}`, events.ErrMalformed, "recipient",
		},
		"control for nobody":  {control, `{"version":1}`, events.ErrMalformed, "recipient"},
		"a command for no id": {control, `{"version":1,"recipient":"n","incarnation":"i","commands":[{"kind":"cancel"}]}`, events.ErrMalformed, "command 0"},
		"a report of no claim": {
			status, `{"version":1,"node":"n","incarnation":"i","reports":[{"id":"t","attempt":1,"kind":"started"}]}`, events.ErrMalformed, "report 0",
		},
		"a heartbeat of nobody":  {status, `{"version":1,"heartbeat":{"counter":1}}`, events.ErrMalformed, "heartbeat"},
		"a heartbeat of no time": {status, `{"version":1,"node":"n","incarnation":"i","heartbeat":{}}`, events.ErrMalformed, "counter"},
		"reports of nobody": {
			status, `{"version":1,"reports":[{"id":"t","attempt":1,"claimId":"c","kind":"started"}]}`, events.ErrMalformed, "node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tc.decode([]byte(tc.value))
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v with %q", err, tc.want, tc.text)
			}
		})
	}
}

func TestDecodeIgnoresWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s, err := events.DecodeStatus([]byte(`{"version":1,"node":"n","incarnation":"i","new":{"deep":[1]},"notice":"moved","reports":[
		{"id":"a","attempt":1,"claimId":"c1","kind":"teleported"},{"id":"b","attempt":1,"claimId":"c2","kind":"started","new":1}]}`))
	if err != nil || len(s.Reports) != 1 || s.Reports[0].ID != "b" || s.Notice != "moved" {
		t.Errorf("status %+v, %v", s, err)
	}
	c, err := events.DecodeControl([]byte(`{"version":1,"recipient":"n","incarnation":"i","commands":[{"kind":"sing","id":"t","claimId":"c"}]}`))
	if err != nil || len(c.Commands) != 1 {
		t.Errorf("control %+v, %v", c, err)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aäb", 2, "a"}, {"aäb", 3, "aä"}, {"ä", 0, ""}, {"a\xffb", 9, "a?b"}, {"\xff\xff\xff", 2, "?"},
	} {
		if got := events.Clip(tc.in, tc.n); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("Clip(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	t.Parallel()
	e, err := events.EncodeQuarantine(events.Quarantine{
		Topic: "t", Reason: strings.Repeat("\x00", 1<<20), Key: make([]byte, 1<<20), Value: make([]byte, 8<<20),
	})
	if err != nil || len(e.Value) > 128<<10 {
		t.Fatalf("%d bytes, %v", len(e.Value), err)
	}
	var q events.Quarantine
	err = json.Unmarshal(e.Value, &q)
	if err != nil || q.Size != 8<<20 || len(q.Value) != 64<<10 || len(q.Key) != 1<<10 || len(q.Reason) != 1<<10 {
		t.Errorf("size %d, value %d, key %d, reason %d: %v", q.Size, len(q.Value), len(q.Key), len(q.Reason), err)
	}
}

func TestPartition(t *testing.T) {
	t.Parallel()
	// The numbers are part of the protocol: a node and a controller of different versions must agree.
	for _, tc := range []struct {
		node       string
		partitions int
		want       int
	}{{"n", 0, 0}, {"n", 1, 0}, {"node-1", 6, 3}, {"node-2", 6, 2}, {"", 1000, 261}, {"node-1", 1000, 387}} {
		if got := events.Partition(tc.node, tc.partitions); got != tc.want {
			t.Errorf("Partition(%q, %d) = %d, want %d", tc.node, tc.partitions, got, tc.want)
		}
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for slots, want := range map[int]int{-3: 1, 0: 1, 1: 1, 7: 7} {
		if got := (&events.AssignedTask{Slots: slots}).Width(); got != want {
			t.Errorf("%d slots are %d, want %d", slots, got, want)
		}
	}
	for slots, want := range map[int]int{0: 0, 1: 0, 4: 4} { // one slot is not said
		if got := events.Assigned(&task.Task{Slots: slots}).Slots; got != want {
			t.Errorf("a task of %d slots is told as %d, want %d", slots, got, want)
		}
	}
}

// What older nodes and controllers do not say reads as nothing.
func TestOlderEvents(t *testing.T) {
	t.Parallel()
	a, err := events.DecodeAssign([]byte(`{"version":1,"recipient":"n","incarnation":"i","tasks":[{"id":"t","className":"c","claimId":"c","attempt":1}]}`))
	if err != nil || a.RoundRobinCount != 0 || a.Tasks[0].Slots != 0 || a.Tasks[0].Width() != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	s, err := events.DecodeStatus([]byte(`{"version":1,"node":"n","incarnation":"i","beat":{"counter":1}}`))
	if want := (registry.Node{ID: "n", Incarnation: "i", Counter: 1}); err != nil || !reflect.DeepEqual(*s.Heartbeat, want) {
		t.Errorf("%+v, %v", s.Heartbeat, err)
	}
}
