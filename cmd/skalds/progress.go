package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	progressWidth = 30
	progressPause = 100 * time.Millisecond
)

// progress is a bar on a terminal; anywhere else it is nothing.
type progress struct {
	w     io.Writer // nil: nowhere
	total int
	began time.Time
	drawn time.Time
}

func newProgress(w io.Writer, total int) *progress {
	p := &progress{total: total, began: time.Now()}
	if isTerminal(w) {
		p.w = w
	}
	return p
}

// show draws how many are done, not too often.
func (p *progress) show(done int) {
	if p.w == nil || time.Since(p.drawn) < progressPause {
		return
	}
	p.drawn = time.Now()
	_, _ = fmt.Fprint(p.w, "\r", p.line(done, p.drawn.Sub(p.began)), "\x1b[K")
}

func (p *progress) line(done int, took time.Duration) string {
	done = min(done, p.total)
	full := progressWidth * done / p.total
	return fmt.Sprintf("[%s%s] %s of %s, %s", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full),
		thousands(int64(done)), thousands(int64(p.total)), human(took))
}

// end wipes the bar away.
func (p *progress) end() {
	if p.w != nil {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}
