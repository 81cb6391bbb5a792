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
)

// Attachments and results are JSON for the node and BSON in the collection, where other programs read and write them, too.
//
// JSON becomes the BSON that means the same: whole numbers int32, int64 or, if larger, Decimal128; all others double; key order stays.
// What BSON cannot hold exactly, or some servers refuse (keys with NUL or a leading $, deep nesting, numbers out of range, lone
// surrogates), is kept whole, as its text in a generic Binary behind jsonText; so every text comes back, and no report is ever refused
// for what its result holds.
//
// BSON becomes JSON: a double always has a point or an exponent (3600.0), one that is no number is null, types that JSON does not know
// are relaxed extended JSON.

// jsonText is how a Binary begins that is a JSON text. (A subtype of our own would say it better, but not every server takes one.)
const jsonText = "\x00json\x00"

// maxDepth is how deep JSON may be nested to become BSON; servers refuse documents deeper than 100.
const maxDepth = 90

// appendJSON writes raw as the value of key.
func appendJSON(dst []byte, key string, raw json.RawMessage) []byte {
	if json.Valid(raw) && utf8.Valid(raw) {
		e := jsonReader{src: raw}
		e.blanks()
		if out, ok := e.value(dst, key, 0); ok {
			return out
		}
	}
	return appendBinary(dst, key, append([]byte(jsonText), raw...))
}

// jsonReader reads valid JSON.
type jsonReader struct {
	src []byte
	at  int
}

func (r *jsonReader) blanks() {
	for r.at < len(r.src) && strings.IndexByte(" \t\r\n", r.src[r.at]) >= 0 {
		r.at++
	}
}

// skip goes over one byte and the blanks behind it.
func (r *jsonReader) skip() { r.at++; r.blanks() }

// value writes the value that begins here. It reports false if BSON cannot hold it exactly; then dst is spoiled.
func (r *jsonReader) value(dst []byte, key string, depth int) ([]byte, bool) {
	ok := true
	switch c := r.src[r.at]; c {
	case '{', '[':
		return r.container(dst, key, depth, c)
	case '"':
		var s string
		if s, ok = r.text(); ok {
			dst = appendString(dst, key, s)
		}
	case 't':
		dst, r.at = appendBool(dst, key, true), r.at+len("true")
	case 'f':
		dst, r.at = appendBool(dst, key, false), r.at+len("false")
	case 'n':
		dst, r.at = appendNull(dst, key), r.at+len("null")
	default:
		dst, ok = r.number(dst, key)
	}
	r.blanks()
	return dst, ok
}

func (r *jsonReader) container(dst []byte, key string, depth int, open byte) ([]byte, bool) {
	if depth == maxDepth {
		return dst, false
	}
	object := open == '{'
	typ, closing := bson.TypeArray, byte(']')
	if object {
		typ, closing = bson.TypeEmbeddedDocument, '}'
	}
	dst, start := beginIn(dst, typ, key)
	r.skip()
	for i := 0; r.src[r.at] != closing; i++ {
		name := position(i)
		if object {
			var ok bool
			if name, ok = r.text(); !ok || strings.HasPrefix(name, "$") || strings.IndexByte(name, 0) >= 0 {
				return dst, false
			}
			r.blanks()
			r.skip() // the colon
		}
		var ok bool
		if dst, ok = r.value(dst, name, depth+1); !ok {
			return dst, false
		}
		if r.src[r.at] == ',' {
			r.skip()
		}
	}
	r.skip()
	return end(dst, start), true
}

// text reads a string. It reports false for one with a lone surrogate, which has no UTF-8.
func (r *jsonReader) text() (string, bool) {
	start := r.at + 1
	escaped := false
	for r.at = start; r.src[r.at] != '"'; r.at++ {
		if r.src[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	plain := r.src[start:r.at]
	r.at++
	if !escaped {
		return string(plain), true
	}
	var s string
	if err := json.Unmarshal(r.src[start-1:r.at], &s); err != nil {
		return "", false
	}
	return s, !strings.Contains(s, "\ufffd") // what the decoder puts in place of a lone surrogate
}

func (r *jsonReader) number(dst []byte, key string) ([]byte, bool) {
	start := r.at
	whole := true
	for ; r.at < len(r.src) && strings.IndexByte("+-.0123456789eE", r.src[r.at]) >= 0; r.at++ {
		whole = whole && strings.IndexByte(".eE", r.src[r.at]) < 0
	}
	text := string(r.src[start:r.at])
	if whole && text != "-0" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return appendInt(dst, key, n), true
		}
		d, err := bson.ParseDecimal128(text)
		return appendDecimal(dst, key, d), err == nil && d.String() == text
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	vanished := f == 0 && strings.ContainsAny(mantissa, "123456789")
	return appendDouble(dst, key, f), err == nil && !vanished
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
	if depth > 2*maxDepth {
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
