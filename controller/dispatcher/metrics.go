package dispatcher

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what a controller process dispatches, over all its leaderships.
type Metrics struct {
	dispatch *prometheus.CounterVec
	lost     prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		dispatch: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_dispatch_total",
			Help: "Tasks claimed and then published (ok), or certainly not published and given back (error).",
		}, []string{"result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_claims_lost_total",
			Help: "Claims that another change of the task came before.",
		}),
	}
	r.MustRegister(m.dispatch, m.lost)
	return m
}

func (m *Metrics) dispatched(ok, failed int) {
	m.dispatch.WithLabelValues("ok").Add(float64(ok))
	m.dispatch.WithLabelValues("error").Add(float64(failed))
}
