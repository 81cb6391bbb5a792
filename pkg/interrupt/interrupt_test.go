//go:build unix

package interrupt_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/interrupt"
)

// asProgram has the test binary be a program that ends by signals only: its value names the stages, in order.
const asProgram = "INTERRUPT_TEST_STAGES"

func TestMain(m *testing.M) {
	if stages := os.Getenv(asProgram); stages != "" {
		program(strings.Split(stages, ","))
	}
	goleak.VerifyTestMain(m)
}

func program(names []string) {
	var stages []func() bool
	for _, name := range names {
		stages = append(stages, func() bool {
			if name == "nothing" {
				return false
			}
			fmt.Println(name)
			return true
		})
	}
	interrupt.Watch(stages...)
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // nobody writes
	os.Exit(1)
}

func TestStages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stages string
		want   []string // what each signal does; the one after them ends the process
	}{
		"one":                        {"a", []string{"a"}},
		"two":                        {"a,b", []string{"a", "b"}},
		"one that has nothing to do": {"a,nothing", []string{"a"}},
		"one between others":         {"nothing,a,nothing,b", []string{"a", "b"}},
		"none":                       {"nothing", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{asProgram + "=" + tt.stages}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			expect := func(text string) {
				t.Helper()
				if !lines.Scan() || lines.Text() != text {
					t.Errorf("it said %q, want %q", lines.Text(), text)
				}
			}
			expect("ready")
			for i, text := range tt.want {
				if err := cmd.Process.Signal([]os.Signal{syscall.SIGTERM, os.Interrupt}[i%2]); err != nil {
					t.Fatal(err)
				}
				expect(text)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if lines.Scan() {
				t.Errorf("one signal more made it say %q", lines.Text())
			}
			_ = cmd.Wait()
			if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v, want the signal to end it", s)
			}
		})
	}
}

// TestTheWatchEnds leaves no goroutine, which goleak would see.
func TestTheWatchEnds(t *testing.T) {
	t.Parallel()
	interrupt.Watch()()
}
