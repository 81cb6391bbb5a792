package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// addresses are host:port of what runs.
type addresses struct {
	api, kafka, redis string
}

// banner is what `skalds dev` prints once it is ready: where it is, and what to try. self is how the program is called.
func banner(self string, at addresses, nodes []string, capacity int) string {
	api, server, join := "http://"+at.api, "", ""
	if portOf(at.api) != devHTTPPort {
		server = " --server " + api
	}
	if port := portOf(at.kafka); port != devKafkaPort {
		join += fmt.Sprintf("KAFKA_PORT=%d ", port)
	}
	if port := portOf(at.redis); port != devRedisPort {
		join += fmt.Sprintf("REDIS_PORT=%d ", port)
	}
	running := "none"
	if len(nodes) > 0 {
		running = fmt.Sprintf("%s; each runs %d tasks at once", span(nodes), capacity)
	}
	var b strings.Builder
	b.WriteString("Skalds is ready. Ctrl-C stops it.\n\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, line := range [][2]string{
		{"API", api + "  (to read and try: " + api + "/api/docs)"},
		{"Kafka", at.kafka},
		{"Redis", at.redis},
		{"Nodes", running},
	} {
		fmt.Fprintf(w, "  %s\t%s\n", line[0], line[1]) //nolint:errcheck // a strings.Builder takes everything
	}
	_ = w.Flush() // a strings.Builder takes everything
	b.WriteString("\nTry in another shell:\n\n")
	try := []string{
		self + ` task submit demo.echo --attachments '{"x":1}' --wait` + server,
		self + " nodes list" + server,
		join + self + " node",
	}
	if len(nodes) == 0 {
		try = []string{try[2], try[0], try[1]} // without a node the task would wait
	}
	for _, line := range try {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// span names a few nodes, or the first and the last of many.
func span(ids []string) string {
	if len(ids) <= 3 {
		return strings.Join(ids, ", ")
	}
	return ids[0] + " to " + ids[len(ids)-1]
}

// command is how this program was called, so that what is printed can be typed again: path is its file, typed its name.
func command(path, typed string) string {
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "go run ./cmd/skalds" // there is no file to call
	}
	if strings.ContainsRune(typed, filepath.Separator) {
		return typed
	}
	return "skalds"
}
