package placement_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

// cpu counts the processor's time until it is called again: other work on the machine does not count, unlike in ns/op.
func cpu(b *testing.B) func() {
	b.Helper()
	b.ReportAllocs()
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	from := used()
	return func() { b.ReportMetric(float64(used()-from)/float64(b.N), "cpu-ns/op") }
}

// wide makes a cluster of so many nodes with labels, each with 3 of 30 classes beside "a".
func wide(n int) (*placement.Cluster, []placement.Node) {
	c := placement.NewCluster(1)
	list := make([]placement.Node, n)
	for i := range list {
		list[i] = placement.Node{
			ID:      fmt.Sprintf("node-%05d", i),
			Classes: []string{"a", fmt.Sprint("c", i%20), fmt.Sprint("d", i%7), fmt.Sprint("e", i%3)},
			Labels: map[string]string{"zone": fmt.Sprint("z", i%5), "rack": fmt.Sprint("r", i%200), "gpu": fmt.Sprint("g", i%4),
				"host": fmt.Sprint("h", i)},
			Capacity: 900_000 + i%3, CPU: float64(i%100) / 100, Memory: -1,
		}
		c.Set(list[i])
	}
	return c, list
}

// decide is the benchmarks' strategies.
func decide() []placement.Strategy {
	return append(placement.Strategies(), "IDLE|ROUND_ROBIN")
}

const nodesOfBench = 10_000

// BenchmarkDecision places tasks on 10,000 nodes. Each op is one decision.
func BenchmarkDecision(b *testing.B) {
	for _, s := range decide() {
		b.Run(string(s), func(b *testing.B) {
			c, _ := wide(nodesOfBench)
			q := placement.Request{Class: "a", Selector: selector(b, "gpu in (g0,g1,g2),!spot"), Strategy: s, StickyKey: "k"}
			c.Place(&q)
			stop := cpu(b)
			for b.Loop() {
				if c.Place(&q).Node == "" {
					b.Fatal("no node")
				}
			}
			stop()
		})
	}
}

// BenchmarkTwentyCandidateSets places tasks of 20 kinds in turn.
func BenchmarkTwentyCandidateSets(b *testing.B) {
	for _, s := range decide() {
		b.Run(string(s), func(b *testing.B) {
			c, _ := wide(nodesOfBench)
			var list []placement.Request
			for i := range 20 {
				list = append(list, placement.Request{Class: "a", Selector: selector(b, fmt.Sprintf("zone!=z%d,rack!=r%d", i%5, i)), Strategy: s,
					StickyKey: fmt.Sprint(i)})
			}
			for i := range list {
				c.Place(&list[i])
			}
			i := 0
			stop := cpu(b)
			for b.Loop() {
				if c.Place(&list[i%20]).Node == "" {
					b.Fatal("no node")
				}
				i++
			}
			stop()
		})
	}
}

// BenchmarkDecisionAndSet ends a task between each two decisions: the nodes' loads go down, too.
func BenchmarkDecisionAndSet(b *testing.B) {
	for _, s := range decide() {
		b.Run(string(s), func(b *testing.B) {
			c, list := wide(nodesOfBench)
			q := placement.Request{Class: "a", Strategy: s, StickyKey: "k"}
			c.Place(&q)
			i := 0
			stop := cpu(b)
			for b.Loop() {
				if c.Place(&q).Node == "" {
					b.Fatal("no node")
				}
				c.Set(list[i%nodesOfBench])
				i += 37
			}
			stop()
		})
	}
}

// BenchmarkNearlyFull places tasks while 19 of 20 nodes are full, and ends them at once.
func BenchmarkNearlyFull(b *testing.B) {
	for _, s := range decide() {
		b.Run(string(s), func(b *testing.B) {
			c, list := wide(nodesOfBench)
			for i := range list {
				if i%20 > 0 {
					list[i].Load = list[i].Capacity
				}
				c.Set(list[i])
			}
			keys := make([]string, 1000)
			for i := range keys {
				keys[i] = fmt.Sprint("key-", i)
			}
			q := placement.Request{Class: "a", Strategy: s}
			i := 0
			stop := cpu(b)
			for b.Loop() {
				q.StickyKey = keys[i%1000]
				if !c.Unplace(c.Place(&q)) {
					b.Fatal("no node")
				}
				i++
			}
			stop()
		})
	}
}

// BenchmarkSet takes in a heartbeat with another load and other readings.
func BenchmarkSet(b *testing.B) {
	c, list := wide(nodesOfBench)
	i := 0
	stop := cpu(b)
	for b.Loop() {
		n := &list[i%nodesOfBench]
		n.Load, n.CPU = i%1000, float64(i%100)/100
		c.Set(*n)
		i += 37
	}
	stop()
}

// BenchmarkFeasible asks for each of 200 queues whether it can be placed.
func BenchmarkFeasible(b *testing.B) {
	c, _ := wide(nodesOfBench)
	var list []placement.Request
	for i := range 200 {
		list = append(list, placement.Request{Class: "a", Selector: selector(b, fmt.Sprint("rack=r", i+100))})
	}
	i := 0
	stop := cpu(b)
	for b.Loop() {
		c.Feasible(&list[i%200])
		i++
	}
	stop()
}

// BenchmarkNewCandidateSet asks for a kind of task for the first time.
func BenchmarkNewCandidateSet(b *testing.B) {
	for name, text := range map[string]string{"all nodes": "never%d!=x", "50 nodes": "rack=r7,never%d!=x", "no node": "zone=%d"} {
		b.Run(name, func(b *testing.B) {
			c, _ := wide(nodesOfBench)
			i := 0
			stop := cpu(b)
			for b.Loop() {
				q := placement.Request{Class: "a", Selector: selector(b, fmt.Sprintf(text, i))}
				c.Feasible(&q)
				i++
			}
			stop()
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	c, _ := wide(nodesOfBench)
	q := placement.Request{Class: "a", Selector: selector(b, "gpu in (g0,g1,g2),!spot")}
	stop := cpu(b)
	for b.Loop() {
		c.Explain(&q)
	}
	stop()
}
