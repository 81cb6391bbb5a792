package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is one node that knows the demo classes.
func cluster() (*nodetest.Cluster, *node.Node) {
	c := nodetest.New()
	n, err := node.New(nodetest.Config("demo"), append(c.Options(), node.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		panic(err)
	}
	demo.Register(n)
	return c, n
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		class       string
		attachments string
		kind        task.Kind
		result      string
		text        string
		takes       time.Duration
		progress    string
	}{
		"echo":                   {demo.ClassEcho, `{"x":[1,"ä"]}`, task.ReportFinished, `{"x":[1,"ä"]}`, "", 0, ""},
		"echo of nothing":        {demo.ClassEcho, ``, task.ReportFinished, ``, "", 0, ""},
		"sleep":                  {demo.ClassSleep, `{"ms":250}`, task.ReportFinished, `{"sleptMs":250}`, "", 250 * time.Millisecond, ""},
		"sleep by default":       {demo.ClassSleep, ``, task.ReportFinished, `{"sleptMs":1000}`, "", time.Second, ""},
		"no sleep":               {demo.ClassSleep, `{"ms":0}`, task.ReportFinished, `{"sleptMs":0}`, "", 0, ""},
		"sleep before":           {demo.ClassSleep, `{"ms":-1}`, task.ReportFailed, ``, "ms is -1, want 0 to 86400000", 0, ""},
		"sleep of a text":        {demo.ClassSleep, `{"ms":"1"}`, task.ReportFailed, ``, "attachments do not decode", 0, ""},
		"fail":                   {demo.ClassFail, `{"message":"no"}`, task.ReportFailed, ``, "no", 0, ""},
		"fail by default":        {demo.ClassFail, ``, task.ReportFailed, ``, "failed as asked", 0, ""},
		"progress":               {demo.ClassProgress, `{"steps":2,"ms":300}`, task.ReportFinished, `{"steps":2}`, "", 600 * time.Millisecond, "step 2 of 2"},
		"progress by default":    {demo.ClassProgress, ``, task.ReportFinished, `{"steps":10}`, "", time.Second, "step 10 of 10"},
		"progress without steps": {demo.ClassProgress, `{"steps":0}`, task.ReportFinished, `{"steps":0}`, "", 0, ""},
		"too many steps":         {demo.ClassProgress, `{"steps":10001}`, task.ReportFailed, ``, "steps is 10001", 0, ""},
		"steps too long":         {demo.ClassProgress, `{"ms":86400001}`, task.ReportFailed, ``, "ms is 86400001", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, n := cluster()
				defer c.Close()
				if _, err := c.Start(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var in any
				if tc.attachments != "" {
					in = json.RawMessage(tc.attachments)
				}
				r, err := c.Do(t.Context(), "demo", tc.class, in)
				if err != nil {
					t.Fatal(err)
				}
				if r.Kind != tc.kind || string(r.Result) != tc.result || !strings.Contains(r.Error, tc.text) || (tc.text == "" && r.Error != "") {
					t.Errorf("%s, result %s, error %q", r.Kind, r.Result, r.Error)
				}
				if passed := time.Since(began); passed != tc.takes {
					t.Errorf("it took %v, want %v", passed, tc.takes)
				}
				if tc.progress != "" && (r.Progress == nil || r.Progress.Message != tc.progress || r.Progress.Percent != 100) {
					t.Errorf("progress %+v", r.Progress)
				}
			})
		})
	}
}

func TestClockIsTheBeginning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, n := cluster()
		defer c.Close()
		if _, err := c.Start(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		r, err := c.Do(t.Context(), "demo", demo.ClassClock, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got demo.Clock
		if err := json.Unmarshal(r.Result, &got); err != nil || got.StartedUs != time.Now().UnixMicro() {
			t.Errorf("result %s, now %d", r.Result, time.Now().UnixMicro())
		}
	})
}

func TestCancelCutsShort(t *testing.T) {
	t.Parallel()
	for _, class := range []string{demo.ClassSleep, demo.ClassProgress} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, n := cluster()
				defer c.Close()
				if _, err := c.Start(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				tk, err := c.Task(class, map[string]int{"ms": 60_000})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := c.Assign(t.Context(), "demo", tk); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Second) // of the bubble's time
				if err := c.Cancel(t.Context(), "demo", tk); err != nil {
					t.Fatal(err)
				}
				r, err := c.AwaitReport(t.Context(), tk.ClaimID, func(r task.Report) bool { return r.Kind.Final() })
				if err != nil || r.Kind != task.ReportCancelled || time.Since(began) != time.Second {
					t.Errorf("after %v: %+v, %v", time.Since(began), r, err)
				}
			})
		})
	}
}

func TestProgressRestsAndTakesNewSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, n := cluster()
		defer c.Close()
		ok := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Start(t.Context(), n)
		ok(err)
		tk, err := c.Task(demo.ClassProgress, map[string]int{"steps": 10_000, "ms": 1000})
		ok(err)
		ok(c.Assign(t.Context(), "demo", tk))
		await := func(kind task.Kind) task.Report {
			r, err := c.AwaitReport(t.Context(), tk.ClaimID, func(r task.Report) bool { return r.Kind == kind })
			ok(err)
			return r
		}
		await(task.ReportProgress)
		ok(c.Command(t.Context(), "demo", events.CommandPause, tk))
		await(task.ReportPaused)
		began := time.Now()
		<-time.After(time.Hour) // of the bubble's time
		tk.Attachments, tk.AttachmentsVersion = json.RawMessage(`{"steps":4,"ms":1000}`), 1
		ok(c.Command(t.Context(), "demo", events.CommandUpdate, tk))
		ok(c.Command(t.Context(), "demo", events.CommandResume, tk))
		if r := await(task.ReportFinished); string(r.Result) != `{"steps":4}` || time.Since(began) > time.Hour+4*time.Second {
			t.Errorf("after %s: %s", time.Since(began), r.Result)
		}
	})
}

func ExampleRegister() {
	c, n := cluster()
	defer c.Close()
	if _, err := c.Start(context.Background(), n); err != nil {
		panic(err)
	}
	r, err := c.Do(context.Background(), "demo", demo.ClassEcho, map[string]int{"x": 1})
	fmt.Println(r.Kind, string(r.Result), err)
	// Output: finished {"x":1} <nil>
}
