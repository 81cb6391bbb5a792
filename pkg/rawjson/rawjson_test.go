package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/rawjson"
)

func TestCompactIsWhatEncodingJSONMakes(t *testing.T) {
	t.Parallel()
	var value *rapid.Generator[any]
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64().AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny())
	value = leaf
	for range 3 {
		value = rapid.OneOf(leaf, rapid.SliceOfN(value, 0, 4).AsAny(), rapid.MapOfN(rapid.StringMatching(`[a-z "\\:,é]*`), value, 0, 4).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		indented, err := json.MarshalIndent(value.Draw(t, "value"), " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		var wanted bytes.Buffer
		if err := json.Compact(&wanted, indented); err != nil {
			t.Fatal(err)
		}
		got, err := rawjson.Compact(indented)
		if err != nil || !bytes.Equal(got, wanted.Bytes()) {
			t.Fatalf("%s, %v, want %s", got, err, wanted.Bytes())
		}
	})
}

func TestCompactRefusesWhatNoStoreHolds(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]string{
		nested(rawjson.MaxDepth):     "",
		nested(rawjson.MaxDepth + 1): "nested more than 90 deep",
		`[1e308,-1e308,0e999]`:       "",
		`{"a":1e309}`:                "the number 1e309 is out of the range",
		`{"a":"\u0000"}`:             "",
		`{"a\u0000" :1}`:             `the key "a\u0000" holds a NUL`,
		`{"a\\u0000":1}`:             "",
	} {
		if _, err := rawjson.Compact([]byte(text)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40s: error %v, want %q", text, err, want)
		}
	}
}

func TestCheckSaysWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		` {"a":[1,2.5,"x"]} `: "", `{"a":`: "not JSON at byte 5", `1 2`: "not JSON at byte 3", "\"ab\xff\"": "byte 3 is not UTF-8", ``: "not JSON",
	} {
		if err := rawjson.Check([]byte(text)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// FuzzReader: stepping through valid JSON shows what encoding/json decodes.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{}`, ` [ ] `, `{"a" : [1 , {"b":"\u00e9"}], "c":null}`, `[[],{},"]",-1.5e3 ]`, `{"\u0000":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if rawjson.Check(text) != nil {
			return
		}
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch r := (rawjson.Reader{Text: text}); r.Peek() {
		case '{':
			got := map[string]json.RawMessage{}
			rawjson.Members(text, func(key, value []byte) bool { got[string(key)] = value; return true })
			if err := json.Unmarshal(text, &object); err != nil || len(got) != len(object) {
				t.Fatalf("%q: %d members, want %d, error %v", text, len(got), len(object), err)
			}
			for key, value := range object {
				if !bytes.Equal(got[key], value) {
					t.Fatalf("%q: member %q is %q, want %q", text, key, got[key], value)
				}
			}
		case '[':
			var got []json.RawMessage
			rawjson.Elements(text, func(value []byte) bool { got = append(got, value); return true })
			if err := json.Unmarshal(text, &array); err != nil || len(got) != len(array) {
				t.Fatalf("%q: %d elements, want %d, error %v", text, len(got), len(array), err)
			}
			for i := range array {
				if !bytes.Equal(got[i], array[i]) {
					t.Fatalf("%q: element %d is %q, want %q", text, i, got[i], array[i])
				}
			}
		default:
			if value := r.Value(); !bytes.Equal(value, bytes.TrimSpace(text)) {
				t.Fatalf("%q: value %q", text, value)
			}
		}
	})
}
