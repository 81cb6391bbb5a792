package mongo

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/rawjson"
)

// through is what becomes of a JSON text on its way through BSON, and the BSON.
func through(t testing.TB, text string) (string, bson.RawValue) {
	t.Helper()
	dst, start := begin(nil)
	doc := bson.Raw(end(appendJSON(dst, "v", json.RawMessage(text)), start))
	if err := doc.Validate(); err != nil {
		t.Fatalf("%q became invalid BSON: %v", text, err)
	}
	v := doc.Lookup("v")
	back, err := readJSON(v)
	if err != nil {
		t.Fatalf("%q does not come back: %v", text, err)
	}
	return string(back), v
}

func TestJSONThroughBSON(t *testing.T) {
	t.Parallel()
	const asText = bson.TypeBinary
	deep := strings.Repeat("[", rawjson.MaxDepth+1) + strings.Repeat("]", rawjson.MaxDepth+1)
	cases := []struct {
		name, in, out string // out empty = as it was
		typ           bson.Type
	}{
		{"object, key order", `{"b":1,"a":{"z":[],"y":{}}}`, "", bson.TypeEmbeddedDocument},
		{"blanks go", " { \"a\" : [ 1 ,\n2 ] } ", `{"a":[1,2]}`, bson.TypeEmbeddedDocument},
		{"array", `[1,"2",null,true,false]`, "", bson.TypeArray},
		{"top-level null is nothing", `null`, "-", bson.TypeNull},
		{"string", `"a\"\\\n\t\r\u0001é😀\u0000"`, "", bson.TypeString},
		{"escapes are undone", `"\u00e9\ud83d\ude00\/"`, `"é😀/"`, bson.TypeString},
		{"lone surrogate", `"\ud800"`, "", asText},
		{"int32", `2147483647`, "", bson.TypeInt32},
		{"int64", `2147483648`, "", bson.TypeInt64},
		{"smallest int64", `-9223372036854775808`, "", bson.TypeInt64},
		{"beyond int64", `9223372036854775808`, "", bson.TypeDecimal128},
		{"34 digits", `-1234567890123456789012345678901234`, "", bson.TypeDecimal128},
		{"36 digits", `123456789012345678901234567890123456`, "", asText},
		{"minus zero", `-0`, `-0.0`, bson.TypeDouble},
		{"a double that is whole", `3600.0`, "", bson.TypeDouble},
		{"a double", `0.1`, "", bson.TypeDouble},
		{"an exponent", `1e3`, `1000.0`, bson.TypeDouble},
		{"large and small", `[1e+300,1e-300]`, "", bson.TypeArray},
		{"beyond a double", `1e999`, "", asText},
		{"below a double", `[1e-999]`, "", asText},
		{"zero with an exponent", `0e5`, `0.0`, bson.TypeDouble},
		{"looks like extended JSON", `{"$oid":"65f0c0ffee65f0c0ffee65f0"}`, "", asText},
		{"looks like a reference", `{"a":[{"$ref":"#/x"}]}`, "", asText},
		{"dots and empty keys", `{"a.b":1,"":2,"a$":3}`, "", bson.TypeEmbeddedDocument},
		{"NUL in a key", `{"a\u0000":1}`, "", asText},
		{"deep", deep[1 : len(deep)-1], "", bson.TypeArray},
		{"too deep", deep + " ", "", asText},
		{"a key twice", `{"a":1,"a":2}`, "", bson.TypeEmbeddedDocument},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := c.out
			switch want {
			case "":
				want = c.in
			case "-":
				want = ""
			}
			if got, v := through(t, c.in); got != want || v.Type != c.typ {
				t.Errorf("%s became %s, stored as %s; want %s, %s", c.in, got, v.Type, want, c.typ)
			}
		})
	}
}

func TestWhatIsNoJSONIsKeptAsBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":`, "\"\xff\"", `1 2`} {
		got, v := through(t, text)
		if v.Type != bson.TypeBinary || !json.Valid([]byte(got)) {
			t.Errorf("%q: stored as %s, came back as %q", text, v.Type, got)
		}
	}
}

// TestBSONAsJSON: what other programs write.
func TestBSONAsJSON(t *testing.T) {
	t.Parallel()
	oid, err := bson.ObjectIDFromHex("65f0c0ffee65f0c0ffee65f0")
	if err != nil {
		t.Fatal(err)
	}
	decimal := func(s string) bson.Decimal128 {
		v, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	cases := []struct {
		name string
		v    any
		want string
	}{
		{"NaN", math.NaN(), `null`},
		{"infinity", []any{math.Inf(1), math.Inf(-1)}, `[null,null]`},
		{"decimal", decimal("1.50"), `1.50`},
		{"decimal NaN", decimal("NaN"), `null`},
		{"decimal with an exponent", decimal("1E+400"), `1E+400`},
		{"object id", bson.D{{Key: "a", Value: oid}}, `{"a":{"$oid":"65f0c0ffee65f0c0ffee65f0"}}`},
		{"date", time.UnixMilli(1796010393269).UTC(), `{"$date":"2026-11-30T03:46:33.269Z"}`},
		{"binary", []byte{1, 2}, `{"$binary":{"base64":"AQI=","subType":"00"}}`},
		{"regular expression", bson.Regex{Pattern: "a", Options: "i"}, `{"$regularExpression":{"pattern":"a","options":"i"}}`},
		{"smallest key", bson.MinKey{}, `{"$minKey":1}`},
		{"undefined", []any{bson.Undefined{}}, `[null]`},
		{"not UTF-8", "a\xff", `"a�"`},
		{"HTML is not escaped", "<&>", `"<&>"`},
		{"whole double", 1e20, `100000000000000000000.0`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, err := bson.Marshal(bson.D{{Key: "v", Value: c.v}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readJSON(bson.Raw(doc).Lookup("v"))
			if err != nil || !json.Valid(got) {
				t.Fatalf("got %s, error %v", got, err)
			}
			if string(got) != c.want {
				t.Errorf("got %s; want %s", got, c.want)
			}
		})
	}
}

// FuzzJSONThroughBSON: every valid text comes back, and means the same.
func FuzzJSONThroughBSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5,-0,1e999,"x",null,true]}`, `{"$oid":"x"}`, `{"a\u0000":"\ud800"}`, `[[[[]]]]`, `9223372036854775808`, `"\ufffd�\ud83d\ude00"`,
		` [ 1E5 , -0.0 ] `, `123456789012345678901234567890123456`, `{"":{"":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, _ := through(t, string(raw))
		if !json.Valid(raw) || strings.ToValidUTF8(string(raw), "") != string(raw) {
			if got != "" && !json.Valid([]byte(got)) {
				t.Fatalf("%q came back as invalid JSON %q", raw, got)
			}
			return
		}
		if strings.TrimSpace(string(raw)) == "null" {
			return
		}
		a, b := tokens(t, raw), tokens(t, []byte(got))
		if len(a) != len(b) {
			t.Fatalf("%s came back as %s", raw, got)
		}
		for i := range a {
			if !sameToken(a[i], b[i]) {
				t.Fatalf("%s came back as %s: %v is %v", raw, got, a[i], b[i])
			}
		}
	})
}

func tokens(t *testing.T, raw []byte) []json.Token {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var all []json.Token
	for {
		tok, err := d.Token()
		if err != nil {
			if d.More() {
				t.Fatalf("%q is not JSON: %v", raw, err)
			}
			return all
		}
		all = append(all, tok)
	}
}

// sameToken compares numbers by their value: whole ones exactly, others as a double holds them.
func sameToken(a, b json.Token) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if !isNumber || !both {
		return a == b
	}
	if x == y {
		return true
	}
	if !strings.ContainsAny(x.String(), ".eE") && x != "-0" {
		m, ok1 := new(big.Int).SetString(x.String(), 10)
		n, ok2 := new(big.Int).SetString(y.String(), 10)
		return ok1 && ok2 && m.Cmp(n) == 0
	}
	f, err1 := x.Float64()
	g, err2 := y.Float64()
	return err1 == nil && err2 == nil && f == g
}

// FuzzReadJSON: any BSON becomes valid JSON, or an error.
func FuzzReadJSON(f *testing.F) {
	for _, v := range []any{
		bson.D{{Key: "a", Value: bson.A{1, 2.5, "x", nil, true, bson.NewObjectID(), time.Now(), []byte{1}}}}, bson.Regex{Pattern: "a"},
		bson.CodeWithScope{Code: "x", Scope: bson.D{}}, bson.Timestamp{T: 1}, bson.Symbol("s"), bson.DBPointer{DB: "d"},
	} {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if bson.Raw(doc).Validate() != nil {
			return
		}
		v, err := bson.Raw(doc).LookupErr("v")
		if err != nil {
			return
		}
		if got, err := readJSON(v); err == nil && got != nil && !json.Valid(got) {
			t.Fatalf("%v became %s", v, got)
		}
	})
}
