package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/node"
)

func TestNewNamesEveryProblem(t *testing.T) {
	t.Setenv("NODE_CAPACITY", "many")
	t.Setenv("DRAIN_HARD", "-1s")
	_, err := node.New(node.ConfigFromEnv())
	if err == nil || !strings.Contains(err.Error(), "NODE_CAPACITY") || !strings.Contains(err.Error(), "DRAIN_HARD") {
		t.Errorf("error %v", err)
	}
	if _, err := node.New(node.Config{}); err == nil {
		t.Error("the zero Config is taken")
	}
}

func TestTooManyClassesAreRefusedAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		for i := range 300 {
			node.Handle(n, fmt.Sprintf("%0250d", i), noop)
		}
		if err := n.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "classes") {
			w.t.Errorf("error %v", err)
		}
	})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts []node.Option
		want string
	}{
		"as given":   {[]node.Option{node.WithVersion("1.2.3")}, "1.2.3"},
		"by default": {nil, "(devel)"}, // of a test binary
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node("n", nil, tt.opts...)
				node.Handle(n, "c", noop)
				w.start(n)
				if got, _, err := w.Registry.Node(w.ctx, "n"); err != nil || got.Version != tt.want {
					w.t.Errorf("version %q, %v; want %q", got.Version, err, tt.want)
				}
			})
		})
	}
}
