package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// countsAge is how old the task counts of a scrape may be, and countsTimeout how long a scrape waits for new ones.
	countsAge     = 5 * time.Second
	countsTimeout = 2 * time.Second
)

// What became of a submitted task: the values of the label outcome.
const (
	submitCreated  = "created"
	submitExists   = "exists"
	submitSameKey  = "same_key"
	submitInvalid  = "invalid"
	submitTooLarge = "too_large"
	submitFull     = "backlog"
	submitError    = "error"
)

func outcomeOf(status int) string {
	switch status {
	case http.StatusCreated:
		return submitCreated
	case http.StatusConflict:
		return submitExists
	case http.StatusOK:
		return submitSameKey
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return submitInvalid
	case http.StatusRequestEntityTooLarge:
		return submitTooLarge
	case http.StatusTooManyRequests:
		return submitFull
	}
	return submitError
}

// metrics are what the API measures of itself. Every label has few values: routes are patterns, methods and codes are
// the known ones.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	submits  *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, tasks Tasks) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skalds_http_requests_total", Help: "Requests answered, by route, method and status code.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "skalds_http_request_seconds", Help: "Time to answer a request, in seconds, by route and method.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"route", "method"}),
		submits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skalds_tasks_submitted_total", Help: "Tasks submitted through the API, by outcome.",
		}, []string{"outcome"}),
	}
	registry.MustRegister(m.requests, m.seconds, m.submits, newTaskCounts(tasks))
	return m
}

func (m *metrics) submitted(outcome string, n int) {
	m.submits.WithLabelValues(outcome).Add(float64(n))
}

func (m *metrics) answered(route, method string, code int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(route, method).Observe(took.Seconds())
}

// taskCounts is a gauge that asks the store when it is scraped, at most once in countsAge. While the store does not
// answer, it shows nothing rather than something old.
type taskCounts struct {
	tasks  Tasks
	desc   *prometheus.Desc
	errors prometheus.Counter

	mu     sync.Mutex
	readAt time.Time
	counts map[task.Status]int64
}

var _ prometheus.Collector = (*taskCounts)(nil)

func newTaskCounts(tasks Tasks) *taskCounts {
	return &taskCounts{
		tasks:  tasks,
		desc:   prometheus.NewDesc("skalds_tasks", "Tasks in the store, by lifecycle status; up to 5 s old.", []string{"status"}, nil),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Name: "skalds_task_count_errors_total", Help: "Scrapes for which the store gave no task counts."}),
	}
}

func (c *taskCounts) Describe(to chan<- *prometheus.Desc) {
	to <- c.desc
	c.errors.Describe(to)
}

func (c *taskCounts) Collect(to chan<- prometheus.Metric) {
	for status, n := range c.read() {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), string(status))
	}
	c.errors.Collect(to)
}

func (c *taskCounts) read() map[task.Status]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts != nil && time.Since(c.readAt) < countsAge {
		return c.counts
	}
	c.counts = nil
	ctx, cancel := context.WithTimeout(context.Background(), countsTimeout)
	defer cancel()
	found, err := c.tasks.Counts(ctx)
	if err != nil {
		c.errors.Inc()
		return nil
	}
	counts := make(map[task.Status]int64, len(task.All()))
	for _, status := range task.All() {
		counts[status] = found[status]
	}
	c.counts, c.readAt = counts, time.Now()
	return counts
}
