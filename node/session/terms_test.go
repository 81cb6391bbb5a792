package session

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	type event struct{ term, turn int64 }
	for name, tt := range map[string]struct {
		events       []event
		term, before int64
	}{
		"nothing":                               {nil, 0, 0},
		"the first leader":                      {[]event{{1, 3}, {1, 4}}, 1, 0},
		"the next reads what it had said":       {[]event{{1, 3}, {1, 4}, {2, 0}}, 2, 4},
		"whatever the next has said":            {[]event{{1, 4}, {2, 5}, {2, 6}}, 2, 4},
		"the one after that reads both":         {[]event{{1, 4}, {2, 5}, {2, 6}, {3, 7}}, 3, 6},
		"one that said nothing changes nothing": {[]event{{1, 4}, {2, 0}, {3, 0}}, 3, 4},
		"an older leader is not heard":          {[]event{{1, 4}, {3, 0}, {2, 9}, {4, 0}}, 4, 4},
		"a copy of an older event":              {[]event{{1, 3}, {1, 4}, {1, 3}, {2, 0}}, 2, 4},
		"a leader that counts anew":             {[]event{{1, 9}, {2, 1}, {2, 2}, {2, 1}, {3, 0}}, 3, 2},
		"nonsense":                              {[]event{{1, 4}, {1, -7}, {2, 0}}, 2, 4},
		"terms may be left out":                 {[]event{{4, 2}, {9, 3}}, 9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var have terms
			for _, e := range tt.events {
				if counts, _ := have.observe(e.term); counts {
					have.setRoundRobinCount(e.turn)
				}
			}
			if have.term != tt.term || have.countBefore != tt.before {
				t.Errorf("term %d with %d before, want %d with %d", have.term, have.countBefore, tt.term, tt.before)
			}
		})
	}
}

// Each leader counts on from what it reads. Whatever copies and stragglers of older events come in between, and however
// often the leader changes, what the next one reads is the count of all that was counted.
func TestTermsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type event struct{ term, turn int64 }
		var have terms
		var sent []event
		term, count := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"leader", "send", "send", "again", "announce"}).Draw(t, "what") {
			case "leader":
				term += int64(rapid.IntRange(1, 3).Draw(t, "higher"))
				if counts, higher := have.observe(term); !counts || !higher {
					t.Fatal("the new leader is not heard")
				}
				if have.countBefore != count {
					t.Fatalf("the leader of term %d reads %d, counted were %d", term, have.countBefore, count)
				}
			case "send":
				count += int64(rapid.IntRange(1, 5).Draw(t, "tasks"))
				sent = append(sent, event{term, count})
				have.observe(term)
				have.setRoundRobinCount(count)
			case "again":
				if len(sent) > 0 {
					e := rapid.SampledFrom(sent).Draw(t, "copy")
					counts, higher := have.observe(e.term)
					if counts != (e.term == term) || higher {
						t.Fatalf("a copy of term %d counts %t", e.term, counts)
					}
					if counts {
						have.setRoundRobinCount(e.turn)
					}
				}
			case "announce":
				have.observe(term)
			}
		}
	})
}
