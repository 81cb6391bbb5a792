package nodetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A handler from end to end: encoding, decoding and the report.
func Example() {
	c := nodetest.New()
	defer c.Close()
	n, err := node.New(nodetest.Config("node-1"), append(c.Options(), node.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		panic(err)
	}
	node.Handle(n, "double", func(_ context.Context, in int) (int, error) { return 2 * in, nil })
	if _, err := c.Start(context.Background(), n); err != nil {
		panic(err)
	}
	r, err := c.Do(context.Background(), "node-1", "double", 21)
	fmt.Println(r.Kind, string(r.Result), err)
	// Output: finished 42 <nil>
}

func TestConfigIsValid(t *testing.T) {
	t.Parallel()
	cfg := nodetest.Config("n")
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	c := nodetest.New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Await(ctx, "n"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Await: %v", err)
	}
	if _, err := c.AwaitReport(ctx, "claim", func(task.Report) bool { return true }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitReport: %v", err)
	}
	if err := c.Assign(t.Context(), "nobody"); err == nil {
		t.Error("an unknown node is assigned to")
	}
}
