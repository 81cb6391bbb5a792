package dispatcher_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
)

// Where every node waits for a token, a round that somebody else's signal began says when the next one comes, too.
func TestARoundInBetweenSaysWhenANodesTokenComes(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.d.Use(store.Dispatcher{NodeRates: map[string]store.Rate{"n1": {PerSecond: 2, Burst: 1}}})
	b.submit(t, "a", 10)
	b.round(t)
	b.clock.Advance(100 * time.Millisecond)
	out, err := b.d.Round(t.Context(), false)
	if err != nil || out.Placed != 0 || out.Next <= 0 || out.Next > 401*time.Millisecond {
		t.Errorf("%+v %v, want the rest of the half second", out, err)
	}
}

func TestOfARateOfZeroNothingStarts(t *testing.T) {
	t.Parallel()
	none, some := store.Rate{Burst: 1}, store.Rate{PerSecond: 10, Burst: 1}
	for name, set := range map[string]func(store.Rate) store.Dispatcher{
		"all": func(r store.Rate) store.Dispatcher { return store.Dispatcher{Rate: &r} },
		"class": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{ClassRates: map[string]store.Rate{"a": r}}
		},
		"node": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{NodeRates: map[string]store.Rate{"n1": r}}
		},
		"any node": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{NodeRates: map[string]store.Rate{store.AnyNode: r}}
		},
		"any class": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{ClassRates: map[string]store.Rate{store.AnyNode: r}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 100, "a"))
			b.submit(t, "a", 10)
			for _, step := range []struct {
				rate store.Rate
				want int
			}{{none, 0}, {some, 1}, {none, 0}} {
				b.d.Use(set(step.rate))
				b.clock.Advance(time.Second)
				if out := b.round(t); out.Placed != step.want || step.want == 0 && out.Next != 0 {
					t.Errorf("%+v at %+v, want %d placed", out, step.rate, step.want)
				}
			}
		})
	}
}
