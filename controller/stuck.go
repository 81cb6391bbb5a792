package controller

import "github.com/prometheus/client_golang/prometheus"

// stuckTasks is a gauge of the tasks that are at nodes which this leader does not hear of. It goes up when a node dies,
// and down when its work was given away: one that stays up says that this does not happen.
func (c *Controller) stuckTasks() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "skalds_stuck_tasks",
		Help: "Tasks at nodes that have missed three heartbeats, or were never heard of; 0 on a controller that does not lead.",
	}, func() float64 {
		l := c.leading()
		if l == nil {
			return 0
		}
		return float64(l.Fleet.Stuck(c.deps.Clock.Boot()))
	})
}
