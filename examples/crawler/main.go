// Command crawler is a node with a long handler, which reports its progress and returns soon when its context ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/skalds-go/skalds/node"
)

// Crawl is the task's attachments, Crawled its result.
type Crawl struct {
	Pages int `json:"pages"`
}

// Crawled is how many pages were visited.
type Crawled struct {
	Visited int `json:"visited"`
}

// crawler visits pages with visit.
type crawler struct {
	visit func(ctx context.Context, page int) error
}

func (c crawler) crawl(ctx context.Context, in Crawl) (Crawled, error) {
	task := node.TaskFrom(ctx)
	for page := range in.Pages {
		if err := c.visit(ctx, page); err != nil {
			if errors.Is(context.Cause(ctx), node.ErrCancelled) {
				task.Logger().Info("a person cancelled the crawl", "visited", page)
			}
			return Crawled{}, fmt.Errorf("page %d: %w", page, err)
		}
		task.Progress(100*float64(page+1)/float64(in.Pages), fmt.Sprintf("visited %d of %d pages", page+1, in.Pages))
	}
	return Crawled{Visited: in.Pages}, nil
}

// pretend takes the time of a page and fetches none. A real visit would pass ctx to http.NewRequestWithContext.
func pretend(ctx context.Context, _ int) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("visit: %w", context.Cause(ctx))
	}
}

func run() error {
	n, err := node.New(node.ConfigFromEnv())
	if err != nil {
		return err
	}
	node.Handle(n, "crawl", crawler{visit: pretend}.crawl)
	return n.RunUntilSignal(context.Background())
}

func main() {
	if err := run(); err != nil {
		slog.Error("the node ended", "error", err)
		os.Exit(1)
	}
}
