package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"
)

// history is all that happened in one simulation. Its hash tells whether two histories are the same; the text is kept
// only on demand.
type history struct {
	keep  bool
	sum   uint64
	count int
	buf   []byte
	lines []line
}

type line struct {
	at        time.Duration
	who, what string
}

func newHistory(keep bool) *history { return &history{keep: keep, sum: 14695981039346656037} }

// note adds an event.
func (h *history) note(at time.Duration, who, format string, args ...any) {
	h.buf = fmt.Appendf(h.buf[:0], "%d %s ", at, who)
	prefix := len(h.buf)
	h.buf = fmt.Appendf(h.buf, format, args...)
	f := fnv.New64a()
	_, _ = f.Write(h.buf) // a hash takes every byte
	h.sum = h.sum*1099511628211 ^ f.Sum64()
	h.count++
	if h.keep {
		h.lines = append(h.lines, line{at, who, string(h.buf[prefix:])})
	}
}

// print writes the timeline: virtual milliseconds, actor, what. Lines that begin with a blank are details, written only
// if all are asked for.
func (h *history) print(out io.Writer, all bool) {
	for _, l := range h.lines {
		if !all && strings.HasPrefix(l.what, " ") {
			continue
		}
		_, _ = fmt.Fprintf(out, "%10.3f ms  %-12s %s\n", float64(l.at)/float64(time.Millisecond), l.who, l.what)
	}
}
