package dispatcher

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what a controller process dispatches, in all terms that it leads.
type Metrics struct {
	dispatch  *prometheus.CounterVec
	unstarted prometheus.Gauge
	throttle  prometheus.Gauge
}

// NewMetrics makes the metrics and registers them with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		dispatch: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_dispatch_total",
			Help: "Tasks that were picked for a node, by what became of it: ok; error (not_published: it waits again; unknown: it may have been " +
				"published, and is sent again); lost (claim: another change of the task came before).",
		}, []string{"result", "reason"}),
		unstarted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_unstarted_tasks",
			Help: "Tasks that this leader has sent and that no node has reported as started (at most DISPATCHER_MAX_PENDING).",
		}),
		throttle: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_throttle_step",
			Help: "How much the dispatcher slows down for tasks that are sent and not started: 0 = not at all, 5 = nearly full.",
		}),
	}
	r.MustRegister(m.dispatch, m.unstarted, m.throttle)
	return m
}

func (m *Metrics) dispatched(ok, unknown, failed int) {
	m.dispatch.WithLabelValues("ok", "").Add(float64(ok))
	m.dispatch.WithLabelValues("error", "unknown").Add(float64(unknown))
	m.dispatch.WithLabelValues("error", "not_published").Add(float64(failed))
}

func (m *Metrics) lose(n int) { m.dispatch.WithLabelValues("lost", "claim").Add(float64(n)) }

func (m *Metrics) setThrottle(unstarted, step int) {
	m.unstarted.Set(float64(unstarted))
	m.throttle.Set(float64(step))
}
