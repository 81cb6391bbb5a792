package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// banner is what `skalds dev` prints once it is ready: where it is, and what to try.
func banner(c *cluster, o devOptions) string {
	self, server, join := command(), "", ""
	if portOf(c.api.String()) != devHTTPPort {
		server = " --server " + c.server()
	}
	if port := portOf(c.kafka.Addr()); port != devKafkaPort {
		join += fmt.Sprintf("KAFKA_PORT=%d ", port)
	}
	if port := portOf(c.redis.Addr()); port != devRedisPort {
		join += fmt.Sprintf("REDIS_PORT=%d ", port)
	}
	nodes := "none (--nodes 0)"
	if len(c.ids) > 0 {
		nodes = fmt.Sprintf("%s, %d tasks at once each", span(c.ids), o.capacity)
	}
	var b strings.Builder
	b.WriteString("Skalds is ready. Ctrl-C stops it.\n\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, line := range [][2]string{
		{"API", c.server() + "  (its pages: " + c.server() + "/api/docs)"},
		{"Kafka", c.kafka.Addr()},
		{"Redis", c.redis.Addr()},
		{"Nodes", nodes},
	} {
		fmt.Fprintf(w, "  %s\t%s\n", line[0], line[1]) //nolint:errcheck // a strings.Builder takes everything
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	fmt.Fprintf(&b, "\nTry in another shell:\n\n")
	fmt.Fprintf(&b, "  %s task submit demo.echo --attachments '{\"x\":1}' --wait%s\n", self, server)
	fmt.Fprintf(&b, "  %s nodes list%s\n", self, server)
	fmt.Fprintf(&b, "  %s%s node\n", join, self)
	return b.String()
}

// span names a few nodes, or the first and the last of many.
func span(ids []string) string {
	if len(ids) <= 3 {
		return strings.Join(ids, ", ")
	}
	return ids[0] + " to " + ids[len(ids)-1]
}

// command is how this program was called, so that what is printed can be typed again.
func command() string {
	if path, err := os.Executable(); err == nil && strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "go run ./cmd/skalds" // there is no binary to call
	}
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return os.Args[0]
	}
	return "skalds"
}
