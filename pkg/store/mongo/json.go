package mongo

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/skalds-go/skalds/pkg/rawjson"
)

// Attachments and results are JSON for the node and BSON in the collection, where other programs read and write them,
// too.
//
// JSON becomes the BSON that means the same: whole numbers int32, int64 or, if larger, Decimal128; all others double;
// key order stays. What BSON cannot hold exactly, or some servers refuse (keys with NUL or a leading $, deep nesting,
// numbers out of range, lone surrogates), is kept whole, as its text in a generic Binary behind jsonText; so every text
// comes back, and no report is ever refused for what its result holds.
//
// BSON becomes JSON: a double always has a point or an exponent (3600.0), one that is no number is null, types that
// JSON does not know are relaxed extended JSON.

// jsonText is how a Binary begins that is a JSON text. (A subtype of our own would say it better, but not every server
// takes one.)
const jsonText = "\x00json\x00"

// appendJSON writes raw as the value of key.
func appendJSON(dst []byte, key string, raw json.RawMessage) []byte {
	if rawjson.Check(raw) == nil {
		if out, ok := appendNext(dst, key, &rawjson.Reader{Text: raw}, 0); ok {
			return out
		}
	}
	return bsoncore.AppendBinaryElement(dst, key, bson.TypeBinaryGeneric, append([]byte(jsonText), raw...))
}

// appendNext writes the next value that r reads. It reports false if BSON cannot hold it exactly; then dst is spoiled.
func appendNext(dst []byte, key string, r *rawjson.Reader, depth int) ([]byte, bool) {
	if c := r.Peek(); c == '{' || c == '[' {
		return appendContainer(dst, key, r, depth)
	}
	switch value := r.Value(); value[0] {
	case '"':
		s, ok := exactString(value)
		return appendString(dst, key, s), ok
	case 't', 'f':
		return bsoncore.AppendBooleanElement(dst, key, value[0] == 't'), true
	case 'n':
		return bsoncore.AppendNullElement(dst, key), true
	default:
		return appendNumber(dst, key, string(value))
	}
}

func appendContainer(dst []byte, key string, r *rawjson.Reader, depth int) ([]byte, bool) {
	if depth == rawjson.MaxDepth {
		return dst, false
	}
	object := r.Peek() == '{'
	typ := bson.TypeArray
	if object {
		typ = bson.TypeEmbeddedDocument
	}
	dst, start := beginIn(dst, typ, key)
	more := r.Open()
	for i := 0; more; i++ {
		var ok bool
		name := position(i)
		if object {
			name, ok = exactString(r.Key())
			if !ok || strings.HasPrefix(name, "$") || strings.IndexByte(name, 0) >= 0 {
				return dst, false
			}
		}
		if dst, ok = appendNext(dst, name, r, depth+1); !ok {
			return dst, false
		}
		more = r.Next()
	}
	return end(dst, start), true
}

// exactString decodes a string. It reports false for one with a lone surrogate, which has no UTF-8.
func exactString(text []byte) (string, bool) {
	s := string(rawjson.Unquote(text))
	return s, len(s) == len(text)-len(`""`) || !strings.Contains(s, "\ufffd") // what stands for a lone surrogate
}

func appendNumber(dst []byte, key, text string) ([]byte, bool) {
	if text != "-0" && !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return appendInt(dst, key, n), true
		}
		d, err := bson.ParseDecimal128(text)
		return appendDecimal(dst, key, d), err == nil && d.String() == text
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	vanished := f == 0 && strings.ContainsAny(mantissa, "123456789")
	return bsoncore.AppendDoubleElement(dst, key, f), err == nil && !vanished
}

// errTooDeep says that a document is nested deeper than any server stores.
var errTooDeep = errors.New("nested too deep")

// readJSON is the JSON of a BSON value; nil for null.
func readJSON(v bson.RawValue) (json.RawMessage, error) {
	if isNull(v) {
		return nil, nil
	}
	if _, b, ok := v.BinaryOK(); ok {
		if text, ours := bytes.CutPrefix(b, []byte(jsonText)); ours && json.Valid(text) {
			return json.RawMessage(bytes.Clone(text)), nil
		}
	}
	return writeJSON(nil, v, 0)
}

func writeJSON(dst []byte, v bson.RawValue, depth int) ([]byte, error) {
	if depth > 2*rawjson.MaxDepth {
		return dst, errTooDeep
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return writeJSONContainer(dst, v, depth)
	case bson.TypeString:
		return writeJSONString(dst, v.StringValue()), nil
	case bson.TypeBoolean:
		return strconv.AppendBool(dst, v.Boolean()), nil
	case bson.TypeInt32, bson.TypeInt64:
		return strconv.AppendInt(dst, v.AsInt64(), 10), nil
	case bson.TypeDouble:
		return writeJSONDouble(dst, v.Double()), nil
	case bson.TypeDecimal128:
		d := v.Decimal128()
		if d.IsNaN() || d.IsInf() != 0 {
			return append(dst, "null"...), nil
		}
		return append(dst, d.String()...), nil
	case bson.TypeNull, bson.TypeUndefined:
		return append(dst, "null"...), nil
	default:
		return writeExtended(dst, v)
	}
}

func writeJSONContainer(dst []byte, v bson.RawValue, depth int) ([]byte, error) {
	object := v.Type == bson.TypeEmbeddedDocument
	elements, err := bson.Raw(v.Value).Elements()
	if err != nil {
		return dst, err //nolint:wrapcheck // readers wrap it with the field
	}
	open, closing := byte('['), byte(']')
	if object {
		open, closing = '{', '}'
	}
	dst = append(dst, open)
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		if object {
			dst = append(writeJSONString(dst, e.Key()), ':')
		}
		if dst, err = writeJSON(dst, e.Value(), depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, closing), nil
}

// writeJSONDouble writes a number that is read as one with a fraction again.
func writeJSONDouble(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	start, format := len(dst), byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

func writeJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s { // a byte that is not UTF-8 comes as U+FFFD
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}

// writeExtended writes a value of a type that JSON does not know as relaxed extended JSON.
func writeExtended(dst []byte, v bson.RawValue) ([]byte, error) {
	const before, after = `{"v":`, `}`
	b, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return dst, err //nolint:wrapcheck // readers wrap it with the field
	}
	text := bytes.TrimSuffix(bytes.TrimPrefix(b, []byte(before)), []byte(after))
	if !json.Valid(text) {
		return append(dst, "null"...), nil
	}
	return append(dst, text...), nil
}

func isNull(v bson.RawValue) bool {
	return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined || v.IsZero()
}
