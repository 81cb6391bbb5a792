package clocktest_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func fired(t clock.Timer) bool {
	select {
	case <-t.C():
		return true
	default:
		return false
	}
}

func TestAdvanceFiresWhatIsDue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		timer   time.Duration
		advance time.Duration
		want    bool
	}{
		{"before", 10, 9, false},
		{"at", 10, 10, true},
		{"after", 10, 11, true},
		{"zero fires at once", 0, 0, true},
		{"negative fires at once", -1, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := clocktest.New(start)
			timer := f.NewTimer(tt.timer)
			f.Advance(tt.advance)
			if got := fired(timer); got != tt.want {
				t.Errorf("fired = %v, want %v", got, tt.want)
			}
			if f.Advance(time.Hour); !tt.want && !fired(timer) {
				t.Error("never fired")
			}
			if fired(timer) {
				t.Error("fired twice")
			}
		})
	}
}

func TestTheThreeTimes(t *testing.T) {
	t.Parallel()
	f := clocktest.New(start)
	boot := f.Boot()
	timer := f.NewTimer(time.Minute)

	f.StepWall(-time.Hour)
	if got := f.Now(); !got.Equal(start.Add(-time.Hour)) {
		t.Errorf("Now after StepWall = %v", got)
	}
	if f.Boot() != boot || fired(timer) {
		t.Error("StepWall moved more than the wall clock")
	}

	f.Suspend(10 * time.Minute)
	if got := f.Boot() - boot; got != 10*time.Minute {
		t.Errorf("Boot moved by %v in a suspend of 10 minutes", got)
	}
	if fired(timer) {
		t.Error("a timer fired in suspend")
	}
	if f.Advance(30 * time.Second); fired(timer) {
		t.Error("the suspend brought the timer nearer to its firing")
	}
	if f.Advance(30 * time.Second); !fired(timer) {
		t.Error("the timer did not go on after the suspend")
	}
	if got := f.Boot() - boot; got != 11*time.Minute {
		t.Errorf("Boot moved by %v in all", got)
	}
}

func TestStopAndReset(t *testing.T) {
	t.Parallel()
	f := clocktest.New(start)
	timer := f.NewTimer(10)
	if !timer.Stop() || timer.Stop() {
		t.Error("Stop does not say whether the timer was armed")
	}
	if f.Advance(20); fired(timer) {
		t.Error("a stopped timer fired")
	}
	if timer.Reset(10) {
		t.Error("Reset of a stopped timer says that it was armed")
	}
	f.Advance(10)
	if timer.Reset(10) { // it has fired and nobody received it
		t.Error("Reset of a fired timer says that it was armed")
	}
	if fired(timer) {
		t.Error("an old firing came through Reset")
	}
	if !timer.Reset(30) {
		t.Error("Reset of an armed timer says that it was not")
	}
	if f.Advance(10); fired(timer) {
		t.Error("the old deadline outlived Reset")
	}
	if f.Advance(20); !fired(timer) {
		t.Error("the new deadline did not fire")
	}
	f.NewTimer(0).Stop()
}

func TestEarliestFiresFirst(t *testing.T) {
	t.Parallel()
	f := clocktest.New(start)
	late, early, same := f.NewTimer(30), f.NewTimer(10), f.NewTimer(30)
	f.Advance(15)
	if fired(late) || fired(same) || !fired(early) {
		t.Error("the timers are not ordered by deadline")
	}
	f.Advance(15)
	if !fired(late) || !fired(same) {
		t.Error("timers of one moment did not all fire")
	}
}

// A loop is driven through five rounds without any real waiting.
func TestBlockUntilDrivesALoop(t *testing.T) {
	t.Parallel()
	f := clocktest.New(start)
	rounds := make(chan time.Duration)
	go func() {
		defer close(rounds)
		timer := f.NewTimer(time.Second)
		for range 5 {
			<-timer.C()
			rounds <- f.Boot()
			timer.Reset(time.Second)
		}
		timer.Stop()
	}()
	begin := f.Boot()
	for i := range 5 {
		f.BlockUntil(1)
		f.Advance(time.Second)
		if got, want := <-rounds-begin, time.Duration(i+1)*time.Second; got != want {
			t.Fatalf("round %d at %v, want %v", i, got, want)
		}
	}
	<-rounds
}

func TestTimeDoesNotGoBack(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Advance took a negative step")
		}
	}()
	clocktest.New(start).Advance(-1)
}

func ExampleFake() {
	f := clocktest.New(time.UnixMilli(0).UTC())
	timer := f.NewTimer(time.Second)
	f.Advance(time.Second)
	fmt.Println((<-timer.C()).Format("05.000"))
	// Output: 01.000
}
