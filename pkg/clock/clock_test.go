package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

func TestSystemBootNeverGoesBack(t *testing.T) {
	t.Parallel()
	var c clock.System
	last := c.Boot()
	for range 10_000 {
		now := c.Boot()
		if now < last {
			t.Fatalf("Boot went from %v to %v", last, now)
		}
		last = now
	}
}

func TestSystemTimer(t *testing.T) {
	t.Parallel()
	var c clock.System
	before := c.Boot()
	const d = 5 * time.Millisecond
	timer := c.NewTimer(d)
	<-timer.C()
	if passed := c.Boot() - before; passed < d {
		t.Errorf("a timer of %v fired when Boot had moved by %v", d, passed)
	}
	if timer.Stop() {
		t.Error("Stop of a timer that fired says that it was armed")
	}
	if timer.Reset(time.Hour) {
		t.Error("Reset of a timer that fired says that it was armed")
	}
	if !timer.Stop() {
		t.Error("Stop of an armed timer says that it was not")
	}
}

// Not parallel: it counts the allocations of the process.
func TestSystemBootAllocatesNothing(t *testing.T) {
	var c clock.Clock = clock.System{}
	if n := testing.AllocsPerRun(1000, func() { c.Boot() }); n != 0 {
		t.Errorf("Boot allocates %v times", n)
	}
}

func BenchmarkBoot(b *testing.B) {
	var c clock.System
	b.ReportAllocs()
	for b.Loop() {
		c.Boot()
	}
}

// A lease is kept by Boot, never by Now.
func ExampleSystem() {
	var c clock.Clock = clock.System{}
	sent := c.Boot()
	trusted := func() bool { return c.Boot()-sent < 7*time.Second }
	fmt.Println(trusted())
	// Output: true
}
