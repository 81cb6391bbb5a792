package main

import (
	"context"
	"errors"
	"testing"

	"github.com/skalds-go/skalds/node"
)

func TestCrawl(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := crawler{visit: func(ctx context.Context, page int) error {
		if page == 3 {
			cancel(node.ErrCancelled)
		}
		return context.Cause(ctx)
	}}
	if got, err := c.crawl(ctx, Crawl{Pages: 3}); err != nil || got.Visited != 3 {
		t.Errorf("three pages: %+v, %v", got, err)
	}
	if _, err := c.crawl(ctx, Crawl{Pages: 10}); !errors.Is(err, node.ErrCancelled) {
		t.Errorf("cancelled on the fourth: %v", err)
	}
}
