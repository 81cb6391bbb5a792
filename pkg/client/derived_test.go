package client_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// Lengths of time are shown where the task's times give them, and nowhere else.
func TestDerivedTimes(t *testing.T) {
	t.Parallel()
	const made = 1_700_000_000_000
	now := time.UnixMilli(made + 60_000)
	for name, c := range map[string]struct {
		task             task.Task
		age, ran, waited time.Duration // age is that of finishDateTime; -1 = not known
	}{
		"finished":               {task.Task{LifecycleStatus: task.Finished, Attempt: 1, CreateDateTime: made, StartDateTime: made + 10, FinishDateTime: made + 30}, 59970, 20, 10},
		"running":                {task.Task{LifecycleStatus: task.Running, Attempt: 1, CreateDateTime: made, StartDateTime: made + 10}, -1, 59990, 10},
		"waits":                  {task.Task{LifecycleStatus: task.Created, CreateDateTime: made}, -1, -1, -1},
		"old, without times":     {task.Task{LifecycleStatus: task.Finished}, -1, -1, -1},
		"old, without a start":   {task.Task{LifecycleStatus: task.Finished, CreateDateTime: made, FinishDateTime: made + 1}, 59999, -1, -1},
		"ended before it began":  {task.Task{LifecycleStatus: task.Failed, CreateDateTime: made, StartDateTime: made + 10, FinishDateTime: made + 5}, 59995, -1, 10},
		"ended before the task":  {task.Task{LifecycleStatus: task.Failed, CreateDateTime: made, StartDateTime: made - 10, FinishDateTime: made - 5}, -1, -1, -1},
		"its clock is ahead":     {task.Task{LifecycleStatus: task.Finished, CreateDateTime: made, StartDateTime: made + 70_000, FinishDateTime: made + 80_000}, 0, 10_000, 70_000},
		"its notBefore had come": {task.Task{LifecycleStatus: task.Running, CreateDateTime: made, NotBefore: made + 40, StartDateTime: made + 50}, -1, 59950, 10},
		"retried, runs": {task.Task{LifecycleStatus: task.Running, Attempt: 2, Failures: 1, CreateDateTime: made, StartDateTime: made + 500,
			Attempts: []task.Run{{Attempt: 1, StartDateTime: made + 10, FinishDateTime: made + 400, Outcome: "failed"}}}, -1, 59500, 100},
		"retried, has ended": {task.Task{LifecycleStatus: task.Failed, Attempt: 2, Failures: 2, CreateDateTime: made, StartDateTime: made + 500, FinishDateTime: made + 600,
			Attempts: []task.Run{{Attempt: 1, FinishDateTime: made + 400}, {Attempt: 2, FinishDateTime: made + 600}}}, 59400, 100, 100},
		"ended at its first run": {task.Task{LifecycleStatus: task.Failed, Attempt: 1, Failures: 1, CreateDateTime: made, StartDateTime: made + 50, FinishDateTime: made + 60,
			Attempts: []task.Run{{Attempt: 1, FinishDateTime: made + 60}}}, 59940, 10, 50},
		"repeated by a person": {task.Task{LifecycleStatus: task.Running, Attempt: 2, CreateDateTime: made, StartDateTime: made + 500,
			Attempts: []task.Run{{Attempt: 1, FinishDateTime: made + 40, Outcome: string(task.ReportFailed)}}}, -1, 59500, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(what string, got time.Duration, known bool, want time.Duration) {
				t.Helper()
				if !known && want != -1 || known && got != want*time.Millisecond {
					t.Errorf("%s %s %v, want %d ms", what, got, known, want)
				}
			}
			age, known := client.Age(&c.task, c.task.FinishDateTime, now)
			check("age", age, known, c.age)
			ran, known := client.Ran(&c.task, now)
			check("ran", ran, known, c.ran)
			waited, known := client.Waited(&c.task)
			check("waited", waited, known, c.waited)
		})
	}
}
