package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// format is how a command prints what the server said.
type format string

const (
	asTable format = "table" // for people
	asJSON  format = "json"  // all of it, for programs
	asName  format = "name"  // ids only, for other commands
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json|name" }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	switch v := format(strings.ToLower(text)); v {
	case asTable, asJSON, asName:
		*f = v
		return nil
	}
	return fmt.Errorf("must be %s, %s or %s", asTable, asJSON, asName)
}

// printf prints an answer. One that cannot be printed is an error: whoever reads it would take half of it for the
// whole.
func printf(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// columns is a writer that aligns cells which tabs end. Its Flush prints.
func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// row writes one line of cells.
func row(w io.Writer, cells ...any) error {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = cell(fmt.Sprint(c))
	}
	return printf(w, "%s\n", strings.Join(text, "\t"))
}

// cell makes text fit for one place of a table: it must neither break the line nor steer the terminal.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text, false)
}

// printable replaces what would steer a terminal. Lines stay if they may.
func printable(text string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// pairs are the lines of one thing: a name and what it holds.
type pairs struct {
	w   *tabwriter.Writer
	err error
}

func newPairs(w io.Writer) *pairs { return &pairs{w: columns(w)} }

// add writes one pair. Lines after the first are indented to the column.
func (p *pairs) add(name, value string) {
	for i, line := range strings.Split(strings.TrimRight(printable(value, true), "\n"), "\n") {
		if i > 0 {
			name = ""
		}
		if p.err == nil {
			p.err = printf(p.w, "%s\t%s\n", name, strings.ReplaceAll(line, "\t", "    "))
		}
	}
}

// addIf writes the pair if there is a value.
func (p *pairs) addIf(name, value string) {
	if value != "" {
		p.add(name, value)
	}
}

func (p *pairs) flush() error {
	if p.err != nil {
		return p.err
	}
	return flush(p.w)
}

func flush(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// age formats how long ago a time (epoch ms) was; "-" if there is none.
func age(ms int64, now time.Time) string {
	if ms <= 0 {
		return "-"
	}
	return human(now.Sub(time.UnixMilli(ms)))
}

// length formats a length of time that may not be known; "-" if it is not.
func length(d time.Duration, known bool) string {
	if !known {
		return "-"
	}
	return human(d)
}

// percent formats a part of a hundred with at most one digit after the point.
func percent(p float64) string {
	return strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64) + " %"
}

// human formats a length of time in its two largest units. Less than nothing, which two clocks may make of it, is
// nothing.
func human(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big time.Duration, bigName string, small time.Duration, smallName string) string {
		text := strconv.FormatInt(int64(d/big), 10) + bigName
		if rest := d % big / small; rest > 0 {
			text += strconv.FormatInt(int64(rest), 10) + smallName
		}
		return text
	}
	switch d = max(d, 0); {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return two(time.Minute, "m", time.Second, "s")
	case d < day:
		return two(time.Hour, "h", time.Minute, "m")
	}
	return two(day, "d", time.Hour, "h")
}

// moment formats a time of a task (epoch ms) in full, with its age if that is known; "" if there is none.
func moment(t *task.Task, ms int64, now time.Time) string {
	if ms <= 0 {
		return ""
	}
	text := time.UnixMilli(ms).Format("2006-01-02 15:04:05.000 MST")
	if d, known := client.Age(t, ms, now); known {
		text += " (" + human(d) + " ago)"
	}
	return text
}

// thousands writes a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// isTerminal reports whether w is a terminal, as far as the standard library can tell.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
