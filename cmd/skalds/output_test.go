package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestHuman(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second:                          "0ms",
		0:                                     "0ms",
		999 * time.Millisecond:                "999ms",
		time.Second:                           "1s",
		1999 * time.Millisecond:               "1.9s",
		10 * time.Second:                      "10s",
		59*time.Second + 900*time.Millisecond: "59s",
		time.Minute:                           "1m",
		61 * time.Second:                      "1m1s",
		time.Hour:                             "1h",
		time.Hour + 59*time.Second:            "1h",
		23*time.Hour + 59*time.Minute:         "23h59m",
		24 * time.Hour:                        "1d",
		400*24*time.Hour + 5*time.Hour + time.Minute: "400d5h",
	} {
		if got := human(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(100_000)
	for name, tt := range map[string]struct{ got, want string }{
		"age":                  {age(98_000, now), "2s"},
		"no age":               {age(0, now), "-"},
		"age of what is ahead": {age(103_000, now), "0ms"},
		"age before all times": {age(-5, now), "-"},
		"length":               {length(2*time.Second, true), "2s"},
		"no length":            {length(0, false), "-"},
		"no moment":            {moment(&task.Task{}, 0, now), ""},
		"progress":             {percent(70.0 / 3), "23.3 %"},
		"rounded up":           {percent(99.96), "100 %"},
		"half":                 {percent(12.5), "12.5 %"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %q, want %q", name, tt.got, tt.want)
		}
	}
}

// TestTimesOfATask prints tasks whose times are missing or in the wrong order: nothing is made up for them.
func TestTimesOfATask(t *testing.T) {
	t.Parallel()
	created := time.Now().Add(-time.Hour).UnixMilli()
	const second = 1000
	for name, tt := range map[string]struct {
		task    task.Task
		holds   []string
		without []string
	}{
		"finished": {
			task.Task{
				LifecycleStatus: task.Finished, Attempt: 1, CreateDateTime: created,
				StartDateTime: created + 2*second, FinishDateTime: created + 5*second,
			},
			[]string{"Waited    2s\n", "Duration  3s\n", "(59m55s ago)"}, nil,
		},
		"retried": {
			task.Task{
				LifecycleStatus: task.Running, Attempt: 2, Failures: 1, CreateDateTime: created, StartDateTime: created + 90*second,
				Attempts: []task.Run{{Attempt: 1, StartDateTime: created, FinishDateTime: created + 80*second, Outcome: "failed"}},
			},
			[]string{"Waited    10s\n", "Duration  58m30s\n"}, nil,
		},
		"never ran": {
			task.Task{LifecycleStatus: task.Cancelled, CreateDateTime: created, FinishDateTime: 5 * second},
			[]string{"Finished  "}, []string{"Waited", "Duration", "5:00.000 UTC ("},
		},
		"no times": {task.Task{LifecycleStatus: task.Finished}, nil, []string{"ago", "Created", "Waited", "Duration"}},
		"wrong order": {
			task.Task{
				LifecycleStatus: task.Failed, Attempt: 1, CreateDateTime: created,
				StartDateTime: created + 2*second, FinishDateTime: created + second,
			},
			[]string{"Waited    2s\n"}, []string{"Duration"},
		},
	} {
		var b bytes.Buffer
		if err := printTask(&b, asTable, &tt.task); err != nil {
			t.Fatal(err)
		}
		for _, text := range tt.holds {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s: it does not hold %q:\n%s", name, text, b.String())
			}
		}
		for _, text := range tt.without {
			if strings.Contains(b.String(), text) {
				t.Errorf("%s: it holds %q:\n%s", name, text, b.String())
			}
		}
	}
}

// TestWhatIsPrintedDoesNotSteerTheTerminal prints what others wrote into a task.
func TestWhatIsPrintedDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	evil := "a\x1b[2Jb\tc\nd\re\u202ef\u009bg"
	for name, show := range map[string]func(*bytes.Buffer) error{
		"one": func(b *bytes.Buffer) error {
			return printTask(b, asTable, &task.Task{ID: evil, Name: evil, Error: evil})
		},
		"lines": func(b *bytes.Buffer) error { return (&taskTable{w: b, format: asTable}).add([]task.Task{{ID: evil}}) },
		"nodes": func(b *bytes.Buffer) error {
			return printNodes(b, asTable, []client.Node{{Node: registry.Node{
				ID: evil, Classes: []string{evil}, CapacityByClass: map[string]int{evil: 1}, Labels: map[string]string{evil: evil},
			}}})
		},
		"node": func(b *bytes.Buffer) error {
			return printNode(b, asTable, &client.Node{Node: registry.Node{ID: evil, Version: evil}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := show(&b); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(b.String(), "\x1b\r\u202e\u009b") {
				t.Errorf("it prints %q", b.String())
			}
			if name == "lines" && strings.Count(b.String(), "\n") != 2 {
				t.Errorf("a task breaks its line: %q", b.String())
			}
		})
	}
	no := &client.Error{Detail: evil}
	if text := textOf(no, exitNo); strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("an error prints %q", text)
	}
}

func TestPrintTask(t *testing.T) {
	t.Parallel()
	whole := &task.Task{
		ID: "t-1", ClassName: "resize", Name: "a picture", Description: "of a cat", Source: "cron", Executor: "node-1", Priority: 7,
		LifecycleStatus: task.Running, Desired: task.DesiredCancelled, Attempt: 2, IdempotencyKey: "k",
		Attachments: []byte(`{ "w": 100 }`), Progress: &task.Progress{Percent: 12.5, Message: "half a quarter"},
		Error: "first line\nsecond line",
	}
	var b bytes.Buffer
	if err := printTask(&b, asTable, whole); err != nil {
		t.Fatal(err)
	}
	golden(t, "task.txt", b.String())
}

func TestLongResultIsCut(t *testing.T) {
	t.Parallel()
	raw := []byte(`"` + strings.Repeat("é", maxShownJSON) + `"`)
	got := jsonText(raw)
	if n := len([]rune(got)); n > maxShownJSON+60 || !strings.Contains(got, "(4002 bytes; -o json shows all)") {
		t.Errorf("%d characters: ...%s", n, got[len(got)-60:])
	}
	if got := jsonText([]byte("not json")); got != "not json" {
		t.Errorf("got %q", got)
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	no := &client.Error{Status: 422, Title: "Unprocessable Entity", Detail: "validation failed", Errors: []client.Detail{
		{Location: "body.priority", Value: 11.0, Message: "must be a whole number from 0 to 10"},
		{Location: "body.id", Value: "a/b", Message: "holds a slash"},
		{Location: "body.className", Message: "is required"},
		{Location: "body", Value: true, Message: "must be an object"},
	}}
	const fields = "skalds: priority is 11: must be a whole number from 0 to 10\n" +
		"skalds: id is \"a/b\": holds a slash\n" +
		"skalds: className is required\n" +
		"skalds: body is true: must be an object"
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"fields":     {no, fields},
		"wrapped":    {errors.Join(errors.New("first"), no), "skalds: first\n" + fields},
		"detail":     {&client.Error{Status: 404, Detail: "there is no task"}, "skalds: there is no task"},
		"title only": {&client.Error{Status: 502, Title: "Bad Gateway"}, "skalds: the server says 502 Bad Gateway"},
		"other":      {errors.New("x"), "skalds: x"},
		"nothing":    {nil, ""},
	} {
		if got := textOf(tt.err, exitNo); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for path, want := range map[[2]string]string{
		{"/var/cache/go-build12/b001/exe/skalds", "/var/cache/go-build12/b001/exe/skalds"}: "go run ./cmd/skalds",
		{"/usr/bin/skalds", "skalds"}:       "skalds",
		{"/src/bin/skalds", "./bin/skalds"}: "./bin/skalds",
	} {
		if got := command(path[0], path[1]); got != want {
			t.Errorf("%v is called as %q, want %q", path, got, want)
		}
	}
}

// TestNodesThatAreGone prints what is known of them, and none of the numbers that they had.
func TestNodesThatAreGone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	gone := client.Node{Gone: &client.GoneNode{
		How: "replaced", At: now.Add(-90 * time.Second).UnixMilli(), LastSeen: now.Add(-100 * time.Second).UnixMilli(),
		Reassigned: 1200, Ended: 3, Waiting: 1,
	}}
	gone.ID, gone.State = "old", "lost"
	var list, one, never bytes.Buffer
	if err := errors.Join(printNodes(&list, asTable, []client.Node{gone}), printNode(&one, asTable, &gone)); err != nil {
		t.Fatal(err)
	}
	const text = "1m30s ago, because its id was taken over; of its tasks 1,200 went back to waiting, 3 ended, 1 are still to be taken back\n"
	if !strings.HasSuffix(list.String(), "old  lost   "+text) {
		t.Errorf("the list is\n%s", list.String())
	}
	if !strings.Contains(one.String(), text) || !strings.Contains(one.String(), "1m40s ago\n") || strings.Contains(one.String(), "Slots") {
		t.Errorf("the node is\n%s", one.String())
	}
	var names bytes.Buffer
	if err := printNodes(&names, asName, []client.Node{gone}); err != nil || names.Len() > 0 {
		t.Errorf("%q is printed for other commands: %v", names.String(), err)
	}
	gone.Gone.LastSeen = 0
	if err := printNode(&never, asTable, &gone); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(never.String(), "Last seen") {
		t.Errorf("a node that was never seen is shown as\n%s", never.String())
	}
}

func TestPrintNodes(t *testing.T) {
	t.Parallel()
	nodes := []client.Node{
		{Node: registry.Node{
			ID: "new", State: "online", Mode: "node", Classes: []string{"echo", "resize"}, Capacity: 16, Prefetch: 8, Running: 2, Queued: 1,
			SlotsRunning: 5, SlotsQueued: 4, CPU: 0.3125, CPUs: 8, Memory: 100 << 20, MemoryTotal: 4 << 30, Version: "1.2.3",
			CapacityByClass: map[string]int{"resize": 4, "gone": 1}, RunningByClass: map[string]int{"resize": 3, "echo": 6},
		}},
		{Node: registry.Node{ID: "old", State: "online", Mode: "node", Classes: []string{"echo"}, Capacity: 4, CPU: 0.5, Memory: 1 << 20}},
	}
	var list, one bytes.Buffer
	if err := printNodes(&list, asTable, nodes); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"ID   STATE   MODE  RUNNING  QUEUED  SLOTS  CPU     MEMORY        ENDED  CLASSES          LABELS  UP\n" +
		"new  online  node  2        1       5/16   0.31/8  100/4096 MiB  0      echo,resize 3/4  -       -\n" +
		"old  online  node  0        0       0/4    0.50    1 MiB         0      echo             -       -\n"
	if list.String() != want {
		t.Errorf("got\n%q, want\n%q", list.String(), want)
	}
	if err := printNode(&one, asTable, &nodes[0]); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"2 running, 1 queued\n", "5 taken, 4 queued; room for 16, and 8 queued\n", "echo, resize (3 of 4 slots)\n", "0.312 of 8 cores\n", "100 of 4096 MiB\n",
	} {
		if !strings.Contains(one.String(), line) {
			t.Errorf("%q is missing in\n%s", line, &one)
		}
	}
}
