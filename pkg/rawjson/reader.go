package rawjson

// Reader steps through Text.
type Reader struct {
	Text []byte
	at   int
}

// Peek returns the first byte of what comes next.
func (r *Reader) Peek() byte {
	r.space()
	return r.Text[r.at]
}

// Open moves past the bracket of an object or an array. It reports false for an empty one, past which it moves.
func (r *Reader) Open() bool {
	r.space()
	r.at++
	if c := r.Peek(); c == '}' || c == ']' {
		r.at++
		return false
	}
	return true
}

// Next moves past a comma, or past the end of the object or array; then it reports false.
func (r *Reader) Next() bool {
	r.space()
	r.at++
	return r.Text[r.at-1] == ','
}

// Key moves past a key and its colon, and returns the text of the key.
func (r *Reader) Key() []byte {
	key := r.Value()
	r.space()
	r.at++
	return key
}

// Value moves past the next value and returns its text.
func (r *Reader) Value() []byte {
	r.space()
	start := r.at
	depth := 0
	for r.at < len(r.Text) {
		switch c := r.Text[r.at]; c {
		case '"':
			r.at = stringEnd(r.Text, r.at)
			if depth == 0 {
				return r.Text[start:r.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what a number or a word stood in
				return r.Text[start:r.at]
			}
			depth--
			if depth == 0 {
				r.at++
				return r.Text[start:r.at]
			}
		default:
			if depth == 0 && (c == ',' || isSpace(c)) {
				return r.Text[start:r.at]
			}
		}
		r.at++
	}
	return r.Text[start:r.at]
}

func (r *Reader) space() {
	for r.at < len(r.Text) && isSpace(r.Text[r.at]) {
		r.at++
	}
}
