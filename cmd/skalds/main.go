// Command skalds is the one binary of Skalds: the controller, the node, the whole cluster in one process for a first
// try, and the client of a running controller.
//
// Invariants:
//
//   - The exit code says what happened: 0 done, 1 the server or the task said no, 2 wrong usage or configuration, 3 the
//     server cannot be reached, 130 interrupted.
//   - What a command answers goes to standard output; errors, logs and progress go to standard error.
//   - The first SIGINT or SIGTERM ends the command's context, and every command then ends cleanly; a second one ends
//     the process at once, but for a command that has said what it does first.
//   - A subcommand is one file; what several of them need stands in run.go (exit codes), connect.go (the API),
//     output.go (what is printed) and build.go (from configuration to clients).
package main

import (
	"context"
	"os"

	"github.com/skalds-go/skalds/pkg/interrupt"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	again := &second{}
	interrupt.Watch(func() bool { cancel(); return true }, again.come)
	os.Exit(run(again.in(ctx), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
