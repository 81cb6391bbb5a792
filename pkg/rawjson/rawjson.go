// Package rawjson checks JSON and steps through it without decoding it. The API, the stores and ingest share its rules.
//
// Only [Check] takes any text. Everything else expects text that Check has accepted.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep JSON may nest. MongoDB allows 100 levels per document, and the task's own are around it.
const MaxDepth = 90

// Check reports why text is not one JSON value in UTF-8.
func Check(text []byte) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("byte %d is not UTF-8", invalidAt(text))
	}
	if json.Valid(text) {
		return nil
	}
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// CheckKeys reports a key that contains a NUL. BSON cannot hold one.
func CheckKeys(text []byte) error {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return nil
	}
	for at := 0; at < len(text); at++ {
		if text[at] != '"' {
			continue
		}
		end := stringEnd(text, at)
		if err := checkKey(text, at, end); err != nil {
			return err
		}
		at = end - 1
	}
	return nil
}

// checkKey is CheckKeys for the string text[start:end], which may be a key or a value.
func checkKey(text []byte, start, end int) error {
	s := text[start:end]
	if !bytes.Contains(s, []byte(`\u0000`)) || !bytes.HasPrefix(bytes.TrimLeft(text[end:], " \n\t\r"), []byte(":")) {
		return nil
	}
	if bytes.IndexByte(Unquote(s), 0) < 0 {
		return nil
	}
	const limit = 128
	if len(s) > limit {
		s = append(bytes.ToValidUTF8(s[:limit], nil), "..."...)
	}
	return fmt.Errorf("the key %s holds a NUL character", s)
}

// Compact returns a copy of text without white space. It reports what a store could not hold: a key with a NUL, a
// number out of range, nesting deeper than MaxDepth.
func Compact(text []byte) ([]byte, error) {
	out := make([]byte, 0, len(text))
	depth := 0
	for at := 0; at < len(text); {
		c := text[at]
		end := at + 1
		switch {
		case isSpace(c):
			at = end
			continue
		case c == '"':
			end = stringEnd(text, at)
			if err := checkKey(text, at, end); err != nil {
				return nil, err
			}
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return nil, fmt.Errorf("nested more than %d deep", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case IsNumber(c):
			end = numberEnd(text, at)
			if number := text[at:end]; !fits(number) {
				return nil, fmt.Errorf("the number %.100s is out of the range of a 64-bit float", number)
			}
		}
		out = append(out, text[at:end]...)
		at = end
	}
	return out, nil
}

// fits reports whether a number is in the range of a 64-bit float. Only a long one, or one with an exponent, can be
// beyond it.
func fits(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return true
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err == nil
}

// Members calls yield for each member of an object until it returns false. The key is decoded, the value is not.
func Members(object []byte, yield func(key, value []byte) bool) {
	r := Reader{Text: object}
	for more := r.Open(); more; more = r.Next() {
		key := r.Key()
		if !yield(Unquote(key), r.Value()) {
			return
		}
	}
}

// Elements calls yield for each element of an array until it returns false.
func Elements(array []byte, yield func(value []byte) bool) {
	r := Reader{Text: array}
	for more := r.Open(); more; more = r.Next() {
		if !yield(r.Value()) {
			return
		}
	}
}

// Unquote decodes a JSON string. The result of a string without escapes shares its memory. A lone surrogate becomes
// U+FFFD.
func Unquote(text []byte) []byte {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return inner // cannot happen with valid JSON
	}
	return []byte(s)
}

// IsNumber reports whether a value that begins with c is a number.
func IsNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// stringEnd returns the offset behind the string that begins at the quote at at.
func stringEnd(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

func numberEnd(text []byte, at int) int {
	for at < len(text) && (IsNumber(text[at]) || strings.IndexByte(".eE+", text[at]) >= 0) {
		at++
	}
	return at
}
