package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/skalds-go/skalds/pkg/task"
)

// Report is what a run found. The times are in milliseconds.
type Report struct {
	// Prefix is what the ids of the tasks begin with.
	Prefix string `json:"-"`

	Scenario       string  `json:"scenario"`
	Tasks          int     `json:"tasks"`
	Seconds        float64 `json:"seconds"` // from the first submit to the last finish
	TasksPerSecond float64 `json:"tasksPerSecond"`
	SubmitToStart  Spread  `json:"submitToStartMs"`
	SubmitToFinish Spread  `json:"submitToFinishMs"`
	FinishedOnce   int     `json:"finishedOnce"` // tasks that are Finished
	Failed         int     `json:"failed"`       // tasks that ended in another way
	Lost           int     `json:"lost"`         // tasks that did not end in time, or are not there
	Doubled        int     `json:"doubled"`      // runs beyond one for each task
}

// Good reports whether every task finished exactly once.
func (r *Report) Good() bool { return r.FinishedOnce == r.Tasks && r.Lost == 0 && r.Doubled == 0 }

// Problem returns nil if every task finished exactly once, and otherwise an error that counts what did not.
func (r *Report) Problem() error {
	if r.Good() {
		return nil
	}
	return fmt.Errorf("of %d tasks %d finished, %d ended otherwise, %d are lost, and there were %d runs too many (ids %s...)",
		r.Tasks, r.FinishedOnce, r.Failed, r.Lost, r.Doubled, r.Prefix)
}

// Spread tells how values are spread, by nearest rank.
type Spread struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (s Spread) String() string {
	ms := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return "p50 " + ms(s.P50) + " ms, p90 " + ms(s.P90) + " ms, p99 " + ms(s.P99) + " ms, max " + ms(s.Max) + " ms"
}

// spreadOf sorts the values, in microseconds.
func spreadOf(us []int64) Spread {
	if len(us) == 0 {
		return Spread{}
	}
	slices.Sort(us)
	at := func(part float64) float64 { return float64(us[max(int(math.Ceil(part*float64(len(us))))-1, 0)]) / 1000 }
	return Spread{P50: at(0.50), P90: at(0.90), P99: at(0.99), Max: at(1)}
}

// run is one task of a run, as the benchmark saw it. Times are epoch microseconds of this machine; 0 = not known.
type run struct {
	submitted int64 // just before the request was sent
	started   int64 // when the handler began
	finished  int64
	status    task.Status // empty = not there
	attempt   int64
}

// evaluate makes the report. extra is how many runs the nodes counted beyond one for each task; negative = they could
// not be asked.
func evaluate(scenario string, runs []run, extra int) Report {
	r := Report{Scenario: scenario, Tasks: len(runs)}
	var start, finish []int64
	var first, last int64
	repeated := 0
	for i := range runs {
		t := &runs[i]
		if t.submitted != 0 && (first == 0 || t.submitted < first) {
			first = t.submitted
		}
		last = max(last, t.finished)
		repeated += max(int(t.attempt)-1, 0)
		switch {
		case t.status == task.Finished:
			r.FinishedOnce++
		case t.status.Terminal():
			r.Failed++
		default:
			r.Lost++
		}
		if t.started != 0 {
			start = append(start, t.started-t.submitted)
		}
		if t.finished != 0 {
			finish = append(finish, t.finished-t.submitted)
		}
	}
	r.SubmitToStart, r.SubmitToFinish = spreadOf(start), spreadOf(finish)
	if r.Doubled = extra; extra < 0 {
		r.Doubled = repeated
	}
	if last > first && first != 0 {
		r.Seconds = float64(last-first) / 1e6
		r.TasksPerSecond = math.Round(float64(r.FinishedOnce)/r.Seconds*10) / 10
	}
	return r
}
