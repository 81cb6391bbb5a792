package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/task"
)

type Resize struct {
	URL   string `json:"url"`
	Width int    `json:"width"`
}

type Resized struct {
	Path string `json:"path"`
}

// A node's main function is no more than this.
func Example() {
	n, err := node.New(node.ConfigFromEnv())
	if err != nil {
		panic(err)
	}
	node.Handle(n, "resize", func(_ context.Context, in Resize) (Resized, error) {
		return Resized{Path: fmt.Sprintf("/images/%d.png", in.Width)}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a real program ends it on SIGTERM: see signal.NotifyContext
	if err := n.Run(ctx); err != nil {
		panic(err)
	}
	fmt.Println("left")
	// Output: left
}

// quiet is for the examples only: what a node logs is no part of their output.
var quiet = node.WithLogger(slog.New(slog.DiscardHandler))

// exampleNode makes a node of a cluster in memory.
func exampleNode(c *nodetest.Cluster) *node.Node {
	n, err := node.New(nodetest.Config("node-1"), append(c.Options(), quiet)...)
	if err != nil {
		panic(err)
	}
	return n
}

// do has the node run one task.
func do(c *nodetest.Cluster, n *node.Node, class string, attachments any) task.Report {
	if _, err := c.Start(context.Background(), n); err != nil {
		panic(err)
	}
	r, err := c.Do(context.Background(), n.ID(), class, attachments)
	if err != nil {
		panic(err)
	}
	return r
}

func ExampleHandle() {
	c := nodetest.New()
	defer c.Close()
	n := exampleNode(c)
	node.Handle(n, "resize", func(_ context.Context, in Resize) (Resized, error) {
		if in.Width <= 0 {
			return Resized{}, errors.New("width must be positive")
		}
		return Resized{Path: fmt.Sprintf("/images/%d.png", in.Width)}, nil
	})
	good := do(c, n, "resize", Resize{URL: "https://example.org/a.png", Width: 80})
	fmt.Println(good.Kind, string(good.Result))
	// Output: finished {"path":"/images/80.png"}
}

func ExampleTaskFrom() {
	c := nodetest.New()
	defer c.Close()
	n := exampleNode(c)
	node.Handle(n, "crawl", func(ctx context.Context, _ any) (string, error) {
		t := node.TaskFrom(ctx)
		t.Progress(50, "half of the pages")
		return fmt.Sprintf("%s, attempt %d", t.ID, t.Attempt), nil
	})
	r := do(c, n, "crawl", nil)
	fmt.Println(string(r.Result), r.Progress.Message)
	// Output: "task-1, attempt 1" half of the pages
}

func ExampleTask_Progress() {
	// In a handler's unit test there is no node: the words go nowhere.
	t := node.TaskFrom(context.Background())
	t.Progress(100, "done")
	fmt.Printf("%q\n", t.ID)
	// Output: ""
}

func ExampleNode_Use() {
	c := nodetest.New()
	defer c.Close()
	n := exampleNode(c)
	n.Use(func(next node.Handler) node.Handler {
		return func(ctx context.Context, attachments json.RawMessage) (json.RawMessage, error) {
			fmt.Println("begin", node.TaskFrom(ctx).ClassName)
			defer fmt.Println("end")
			return next(ctx, attachments)
		}
	})
	node.Handle(n, "greet", func(_ context.Context, name string) (string, error) {
		fmt.Println("hello", name)
		return "", nil
	})
	do(c, n, "greet", "world")
	// Output:
	// begin greet
	// hello world
	// end
}

func ExampleNew() {
	cfg := node.ConfigFromEnv()
	cfg.Capacity = 4
	cfg.Labels = map[string]string{"zone": "a"}
	n, err := node.New(cfg, node.WithLogger(slog.New(slog.DiscardHandler)))
	fmt.Println(n != nil, err)
	// Output: true <nil>
}

func ExampleNode_Run() {
	c := nodetest.New()
	defer c.Close()
	n := exampleNode(c)
	node.Handle(n, "wait", func(ctx context.Context, _ any) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx) // node.ErrCancelled, node.ErrDraining or node.ErrLeaseLost
	})
	ctx, cancel := context.WithCancel(context.Background())
	stop, err := c.Start(ctx, n)
	if err != nil {
		panic(err)
	}
	cancel()
	fmt.Println(stop())
	// Output: <nil>
}
