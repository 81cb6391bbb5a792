package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep attachments may nest: MongoDB takes 100 levels in all, and the task is around them.
const maxDepth = 90

// checkJSON says what keeps body from being one JSON value in UTF-8.
func checkJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty; send a JSON object")
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("byte %d is not UTF-8", invalidAt(body))
	}
	if json.Valid(body) {
		return nil
	}
	var value json.RawMessage
	err := json.Unmarshal(body, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

func invalidAt(body []byte) int {
	at := 0
	for at < len(body) {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// walker steps through text that is known to be valid JSON.
type walker struct {
	text []byte
	at   int
}

func (w *walker) space() {
	for w.at < len(w.text) && isSpace(w.text[w.at]) {
		w.at++
	}
}

// value moves past the next value and gives its text.
func (w *walker) value() []byte {
	w.space()
	start := w.at
	depth := 0
	for w.at < len(w.text) {
		switch c := w.text[w.at]; c {
		case '"':
			w.at = stringEnd(w.text, w.at)
			if depth == 0 {
				return w.text[start:w.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what a number or a word stood in
				return w.text[start:w.at]
			}
			depth--
			if depth == 0 {
				w.at++
				return w.text[start:w.at]
			}
		default:
			if depth == 0 && (c == ',' || isSpace(c)) {
				return w.text[start:w.at]
			}
		}
		w.at++
	}
	return w.text[start:w.at]
}

// next moves past a comma, or past the end of the array or object, of which it reports false.
func (w *walker) next() bool {
	w.space()
	w.at++
	return w.text[w.at-1] == ','
}

// open moves past a bracket and reports whether anything is behind it before its end.
func (w *walker) open() bool {
	w.space()
	w.at++
	w.space()
	return w.text[w.at] != '}' && w.text[w.at] != ']'
}

// members calls yield for each member of the object in text, until it returns false. The key is decoded, the value is not.
func members(text []byte, yield func(key []byte, value []byte) bool) {
	w := walker{text: text}
	for more := w.open(); more; more = w.next() {
		key := w.value()
		w.space()
		w.at++ // the colon
		if !yield(unquote(key), w.value()) {
			return
		}
	}
}

// elements calls yield for each element of the array in text, until it returns false.
func elements(text []byte, yield func(value []byte) bool) {
	w := walker{text: text}
	for more := w.open(); more; more = w.next() {
		if !yield(w.value()) {
			return
		}
	}
}

// stringEnd gives the place behind the string that begins at the quote at at.
func stringEnd(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// unquote decodes a JSON string. Without escapes it is a part of the same bytes.
func unquote(text []byte) []byte {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return inner // cannot be: the text is valid JSON
	}
	return []byte(s)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// compact gives valid JSON without white space, in memory of its own, and says what no store could hold of it.
func compact(text []byte) ([]byte, error) {
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
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case isNumber(c):
			end = numberEnd(text, at)
			if !fits(text[at:end]) {
				return nil, fmt.Errorf("the number %s is out of the range of a 64-bit float", shorten(string(text[at:end])))
			}
		}
		out = append(out, text[at:end]...)
		at = end
	}
	return out, nil
}

// fits says whether a number is in the range of a 64-bit float. Only a long one, or one with an exponent, can be beyond it.
func fits(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return true
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err == nil
}

func numberEnd(text []byte, at int) int {
	for at < len(text) && (isNumber(text[at]) || strings.IndexByte(".eE+", text[at]) >= 0) {
		at++
	}
	return at
}

// checkKey refuses a key with a NUL in it: BSON ends keys by one.
func checkKey(text []byte, start, end int) error {
	if !bytes.Contains(text[start:end], []byte(`\u0000`)) {
		return nil
	}
	next := end
	for next < len(text) && isSpace(text[next]) {
		next++
	}
	if next < len(text) && text[next] == ':' && bytes.IndexByte(unquote(text[start:end]), 0) >= 0 {
		return fmt.Errorf("the key %s holds a NUL character", shorten(string(text[start:end])))
	}
	return nil
}

// shorten cuts what is echoed in an error to at most 128 bytes.
func shorten(s string) string {
	const limit = 128
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
