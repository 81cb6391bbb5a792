//go:build unix

package docs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/skalds-go/skalds/controller" // what the page runs: a change of it runs this test again
	_ "github.com/skalds-go/skalds/node"
)

const (
	gettingStarted = "docs/getting-started.md"
	module         = "github.com/skalds-go/skalds"
	// limit bounds one block: a first build of a page's program on a busy machine takes the longest.
	limit = 5 * time.Minute
)

// Blocks whose commands the test replaces: what they do depends on the network or on a release.
var (
	fetchSDK = "go get " + module + "/node@latest\n"
	startDev = "skalds dev\n"
	apiAddr  = "127.0.0.1:8000"
)

// TestGettingStarted runs the page in an empty folder, block by block.
//
//   - sh: the commands run in one shell for the whole page, so that variables and the folder stay. Each must succeed.
//   - sh running: the commands keep running in a shell of their own, which starts in the present folder.
//   - sh install: is left out; the test builds the program from the checkout.
//   - go NAME: is written to the file NAME in the present folder.
//   - text: each line stands in the output of the last command. A command alone in its block is repeated until that
//     holds.
func TestGettingStarted(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("builds and runs programs")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	page, err := blocks(readPage(t, gettingStarted))
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	var last block
	var output string
	fetched, started := false, false
	for _, b := range page {
		switch {
		case b.lang == "sh" && b.info == "install":
		case b.lang == "sh" && b.info == "running":
			started = started || b.text == startDev
			r.keepRunning(b)
		case b.lang == "sh" && b.text == fetchSDK:
			fetched = true
			r.run(block{line: b.line, text: r.useCheckout})
		case b.lang == "sh" && b.info == "" && strings.Contains(b.text, "curl") && r.noCurl:
			t.Logf("%s:%d is left out: no curl", gettingStarted, b.line)
		case b.lang == "sh" && b.info == "":
			last, output = b, r.run(b)
		case b.lang == "text":
			r.expect(b, last, output)
		case b.lang == "go" && b.info != "":
			r.write(b)
		default:
			t.Errorf("%s:%d: a block ```%s %s: the test does not know what to do with it", gettingStarted, b.line, b.lang, b.info)
		}
	}
	if !fetched || !started {
		t.Errorf("%s has no block %q, or none %q", gettingStarted, fetchSDK, startDev)
	}
}

// reader does what a reader of the page does.
type reader struct {
	t           *testing.T
	env         []string
	shell       *shell
	useCheckout string // commands in place of fetchSDK
	api         string // host:port
	noCurl      bool
}

func newReader(t *testing.T) *reader {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "skalds"), "./cmd/skalds")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	_, noCurl := exec.LookPath("curl")
	r := &reader{t: t, useCheckout: useCheckout(t, checkout), noCurl: noCurl != nil}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if name == "PATH" {
			value = bin + string(filepath.ListSeparator) + value
		}
		if !slices.ContainsFunc(ownVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			r.env = append(r.env, name+"="+value)
		}
	}
	r.env = append(r.env, "GOPROXY=off", "GOWORK=off")
	r.shell = r.start(t.TempDir())
	return r
}

// ownVariables are the beginnings of the names of variables that must not reach the page from outside.
var ownVariables = []string{"API_", "KAFKA_", "REDIS_", "SKALD", "NODE_", "LOG_LEVEL", "PWD", "OLDPWD"}

// useCheckout returns the commands that make a module use the checkout, and the very versions that the checkout uses:
// they are in the module cache, since this test was built with them.
func useCheckout(t *testing.T, checkout string) string {
	t.Helper()
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	edit.Dir = checkout
	out, err := edit.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Go      string
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	fmt.Fprintf(&commands, "go mod edit -go=%s -require=%s@v0.0.0 -replace='%s=%s'", mod.Go, module, module, checkout)
	for _, m := range mod.Require {
		fmt.Fprintf(&commands, " -require=%s@%s", m.Path, m.Version)
	}
	fmt.Fprintf(&commands, "\ncp '%s/go.sum' .\n", checkout)
	return commands.String()
}

// start starts a shell. Its processes end with the test.
func (r *reader) start(dir string) *shell {
	r.t.Helper()
	s := &shell{cmd: exec.Command("sh", "-e")}
	s.cmd.Dir, s.cmd.Env = dir, r.env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	s.in, s.lines = in, make(chan string, 1000)
	go s.read(out)
	r.t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		if s.logged != nil {
			<-s.logged
		}
		for range s.lines { // until the last process of the group has ended
		}
		_ = s.cmd.Wait()
	})
	return s
}

// shell is a shell with what it prints.
type shell struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string // closed when it has ended

	logged chan struct{} // if not nil: closed when all lines are in the test's log
}

func (s *shell) read(out io.Reader) {
	defer close(s.lines)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		s.lines <- scan.Text()
	}
}

// until returns what the shell prints before a line that ends it, with that line.
func (s *shell) until(ctx context.Context, ends func(line string) bool) (string, error) {
	var printed strings.Builder
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				return printed.String(), fmt.Errorf("the shell ended")
			}
			fmt.Fprintln(&printed, line)
			if ends(line) {
				return printed.String(), nil
			}
		case <-ctx.Done():
			return printed.String(), ctx.Err()
		}
	}
}

const endOfBlock = "end-of-block in "

// try runs the commands and returns what they print, and the folder in which they end.
func (r *reader) try(commands string) (output, dir string, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	if r.api != "" {
		commands = strings.ReplaceAll(commands, apiAddr, r.api)
	}
	if _, err := fmt.Fprintf(r.shell.in, "%secho; echo \"%s$PWD\"\n", commands, endOfBlock); err != nil {
		return "", "", err
	}
	output, err = r.shell.until(ctx, func(line string) bool { return strings.HasPrefix(line, endOfBlock) })
	output, dir, _ = strings.Cut(output, endOfBlock)
	return output, strings.TrimSpace(dir), err
}

func (r *reader) run(b block) string {
	r.t.Helper()
	output, _, err := r.try(b.text)
	if err != nil {
		r.t.Fatalf("%s:%d: %v\n%s\nprinted\n%s", gettingStarted, b.line, err, b.text, output)
	}
	return output
}

func (r *reader) dir() string {
	r.t.Helper()
	_, dir, err := r.try("")
	if err != nil {
		r.t.Fatal(err)
	}
	return dir
}

func (r *reader) write(b block) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir(), b.info), []byte(b.text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// keepRunning starts the block's commands. Of the cluster it waits for the addresses, which all later blocks use.
func (r *reader) keepRunning(b block) {
	r.t.Helper()
	s := r.start(r.dir())
	if b.text != startDev {
		if _, err := io.WriteString(s.in, b.text); err != nil {
			r.t.Fatal(err)
		}
		s.logged = make(chan struct{})
		go func() {
			defer close(s.logged)
			for line := range s.lines {
				r.t.Logf("%s:%d: %s", gettingStarted, b.line, line)
			}
		}()
		return
	}
	if _, err := io.WriteString(s.in, "skalds dev --kafka-port 0 --redis-port 0 --http-port 0\n"); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	banner, err := s.until(ctx, func(line string) bool { return strings.Contains(line, "Nodes") })
	if err != nil {
		r.t.Fatalf("%s:%d: %v\n%s", gettingStarted, b.line, err, banner)
	}
	address := func(name string) string {
		found := regexp.MustCompile(name + ` +(?:http://)?127\.0\.0\.1:(\d+)`).FindStringSubmatch(banner)
		if found == nil {
			r.t.Fatalf("%s:%d prints no address of %s:\n%s", gettingStarted, b.line, name, banner)
		}
		return found[1]
	}
	r.api = "127.0.0.1:" + address("API")
	variables := []string{"SKALDS_SERVER=http://" + r.api, "KAFKA_PORT=" + address("Kafka"), "REDIS_PORT=" + address("Redis")}
	r.env = append(r.env, variables...)
	r.run(block{line: b.line, text: "export " + strings.Join(variables, " ") + "\n"})
}

// expect looks for each line of want in the output, whatever blanks it has. Where the commands are one, it may take
// some time.
func (r *reader) expect(want, of block, output string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for {
		missing := missingLines(want.text, output)
		if len(missing) == 0 {
			return
		}
		if strings.Count(of.text, "\n") > 1 || ctx.Err() != nil {
			r.t.Fatalf("%s:%d: the output of\n%s\nhas no line\n%s\nbut is\n%s",
				gettingStarted, want.line, of.text, strings.Join(missing, "\n"), output)
		}
		output = r.run(of)
	}
}

func missingLines(want, output string) []string {
	printed := map[string]bool{}
	for line := range strings.Lines(output) {
		printed[strings.Join(strings.Fields(line), " ")] = true
	}
	var missing []string
	for line := range strings.Lines(want) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !printed[line] {
			missing = append(missing, line)
		}
	}
	return missing
}
