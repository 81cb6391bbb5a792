package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/skalds-go/skalds/pkg/task"
)

// benchReport is what a run of the benchmark found. The times are in milliseconds.
type benchReport struct {
	Scenario       string  `json:"scenario"`
	Tasks          int     `json:"tasks"`
	Seconds        float64 `json:"seconds"` // from the first submit to the last finish
	TasksPerSecond float64 `json:"tasksPerSecond"`
	SubmitToStart  spread  `json:"submitToStartMs"`
	SubmitToFinish spread  `json:"submitToFinishMs"`
	FinishedOnce   int     `json:"finishedOnce"` // tasks that are Finished
	Failed         int     `json:"failed"`       // tasks that ended in another way
	Lost           int     `json:"lost"`         // tasks that did not end in time, or are not there
	Doubled        int     `json:"doubled"`      // runs beyond one for each task
}

// good says whether every task finished exactly once.
func (r *benchReport) good() bool { return r.FinishedOnce == r.Tasks && r.Lost == 0 && r.Doubled == 0 }

// problem is nil if every task finished exactly once. The ids of the tasks begin with prefix.
func (r *benchReport) problem(prefix string) error {
	if r.good() {
		return nil
	}
	return fmt.Errorf("of %d tasks %d finished, %d ended otherwise, %d are lost, and there were %d runs too many (ids %s...)",
		r.Tasks, r.FinishedOnce, r.Failed, r.Lost, r.Doubled, prefix)
}

func (r *benchReport) print(w io.Writer) error {
	p := newPairs(w)
	r.add(p)
	return p.flush()
}

func (r *benchReport) add(p *pairs) {
	p.add("Tasks", thousands(int64(r.Tasks))+" in "+strconv.FormatFloat(r.Seconds, 'f', 3, 64)+" s")
	p.add("Throughput", thousands(int64(math.Round(r.TasksPerSecond)))+" tasks/s")
	p.add("Submit to start", r.SubmitToStart.String())
	p.add("Submit to finish", r.SubmitToFinish.String())
	p.add("Finished once", thousands(int64(r.FinishedOnce)))
	p.add("Failed", thousands(int64(r.Failed)))
	p.add("Lost", thousands(int64(r.Lost)))
	p.add("Doubled", thousands(int64(r.Doubled)))
}

// spread says how values are spread, by nearest rank.
type spread struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (s spread) String() string {
	ms := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return "p50 " + ms(s.P50) + " ms, p90 " + ms(s.P90) + " ms, p99 " + ms(s.P99) + " ms, max " + ms(s.Max) + " ms"
}

// spreadOf sorts the values, in microseconds.
func spreadOf(us []int64) spread {
	if len(us) == 0 {
		return spread{}
	}
	slices.Sort(us)
	at := func(part float64) float64 { return float64(us[max(int(math.Ceil(part*float64(len(us))))-1, 0)]) / 1000 }
	return spread{P50: at(0.50), P90: at(0.90), P99: at(0.99), Max: at(1)}
}

// benchRun is one task of a run, as the benchmark saw it. Times are epoch microseconds of this machine; 0 = not known.
type benchRun struct {
	submitted int64 // just before the request was sent
	started   int64 // when the handler began
	finished  int64
	status    task.Status // empty = not there
	attempt   int64
}

// evaluate makes the report. extra is how many runs the nodes counted beyond one for each task; negative = they could not be asked.
func evaluate(scenario string, runs []benchRun, extra int) benchReport {
	r := benchReport{Scenario: scenario, Tasks: len(runs)}
	var start, finish []int64
	var first, last int64
	repeated := 0
	for i := range runs {
		run := &runs[i]
		if run.submitted != 0 && (first == 0 || run.submitted < first) {
			first = run.submitted
		}
		last = max(last, run.finished)
		repeated += max(int(run.attempt)-1, 0)
		switch {
		case run.status == task.Finished:
			r.FinishedOnce++
		case run.status.Terminal():
			r.Failed++
		default:
			r.Lost++
		}
		if run.started != 0 {
			start = append(start, run.started-run.submitted)
		}
		if run.finished != 0 {
			finish = append(finish, run.finished-run.submitted)
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
