package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
)

func TestDecoderAndDocumentKnowTheSameFields(t *testing.T) {
	t.Parallel()
	var documented, decoded []string
	for f := range reflect.TypeFor[client.NewTask]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		documented = append(documented, name)
	}
	for name := range fields {
		decoded = append(decoded, name)
	}
	slices.Sort(documented)
	slices.Sort(decoded)
	if !slices.Equal(documented, decoded) {
		t.Errorf("documented %v, decoded %v", documented, decoded)
	}
}

// FuzzDecode holds the decoder against encoding/json: what it accepts is a task that every store can hold, and that
// reads the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"className":"c"}`, `{"className":"a\u00e9\n","attachments":{"a":[1,2.5e3,{"b":null}]}}`, ` { "className" : "c" , "id" : "x" } `,
		`{"className":"c","attachments":[]}`, `{"className":"c","priority":3,"mode":"Active","isPersistent":false}`, `[]`, `{}`, `7`, `"`,
		`{"className":"c","attachments":"\\\""}`, `{"className":"c","className":"d"}`, `{"class\u004eame":"c"}`, `{"className":"c","attachments":{"\u0000":1}}`,
		`{"className":"c","name":"\ud800","description":"` + "\u2028" + `"}`, `{"className":"c","deadlineDateTime":1e3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if checkJSON(text) != nil {
			return
		}
		d := taskDecoder{maxAttachments: 1 << 16}
		got, refused := d.decode(bytes.TrimSpace(text), "body")
		if refused.status != 0 {
			if refused.err() == nil || refused.text() == "" || len(refused.details) == 0 || len(refused.details) > maxDetails {
				t.Fatalf("refusal without a reason: %+v", refused)
			}
			return
		}
		got.ID += "x"
		if err := store.CheckNew(&got); err != nil || got.Unfit() != "" && len(got.ID) <= 256 {
			t.Fatalf("accepted, but %v, %s: %s", err, got.Unfit(), text)
		}
		var wanted struct {
			ClassName, Name, Description, Source string
			Attachments                          json.RawMessage
			Priority                             int
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		if err := decoder.Decode(&wanted); err != nil {
			t.Fatalf("accepted, but encoding/json says %v: %s", err, text)
		}
		// encoding/json takes names in any case, and what comes last wins; such texts are refused here, or have one of
		// each.
		if strings.Count(string(text), `"className"`) == 1 && !bytes.ContainsRune(text, '\\') &&
			(got.ClassName != wanted.ClassName || got.Priority != wanted.Priority || got.Name != wanted.Name) {
			t.Fatalf("%+v, encoding/json %+v", got, wanted)
		}
	})
}

// FuzzSplitBatch feeds whole bodies.
func FuzzSplitBatch(f *testing.F) {
	for _, seed := range []string{`{"tasks":[{"className":"c"},7,"x",[]]}`, `{"tasks":[]}`, `{"tasks":{}}`, `[]`, ` {"a":1,"tasks" : [ 1 , 2 ] } `, `{"tasks":[1],"tasks":[2,3]}`, `{`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := splitBatch(text, 10)
		if err != nil {
			if status := statusOf(err); status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
				t.Fatalf("status %d", status)
			}
			return
		}
		if len(list) == 0 || len(list) > 10 {
			t.Fatalf("%d tasks", len(list))
		}
		for _, one := range list {
			if !json.Valid(one) {
				t.Fatalf("not JSON: %s", one)
			}
		}
	})
}

func TestShortenKeepsRunesWhole(t *testing.T) {
	t.Parallel()
	if got := shorten(strings.Repeat("é", 100)); got != strings.Repeat("é", 64)+"..." {
		t.Errorf("%q", got)
	}
	if got := shorten("x" + strings.Repeat("é", 100)); got != "x"+strings.Repeat("é", 63)+"..." {
		t.Errorf("%q", got)
	}
}

func TestBeatClock(t *testing.T) {
	t.Parallel()
	c := &beatClock{}
	node := registry.Node{ID: "a", Incarnation: "i", Counter: 1}
	steps := []struct {
		change func()
		now    int64
		want   int64
	}{
		{func() {}, 100, 100},
		{func() {}, 200, 100}, // stands still
		{func() { node.Counter++ }, 300, 300},
		{func() { node.Incarnation = "j" }, 400, 400},
		{func() { c.see([]registry.Node{node}, 450) }, 500, 400},
		{func() { c.see(nil, 550) }, 600, 600}, // left, and came back
	}
	for i, step := range steps {
		step.change()
		if got := c.seenAt(&node, step.now); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
	c.see(nil, 0)
	for i := range maxBeats + 10 {
		c.seenAt(&registry.Node{ID: strings.Repeat("x", i%7) + string(rune(i))}, 1)
	}
	if len(c.seen) > maxBeats {
		t.Errorf("%d remembered", len(c.seen))
	}
}
