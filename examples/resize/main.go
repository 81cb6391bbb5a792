// Command resize is a node with one typed handler: it computes the size at which a picture fits into a square.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/skalds-go/skalds/node"
)

// Resize is the task's attachments, Resized its result.
type Resize struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Fit    int `json:"fit"` // the square's side
}

// Resized is the new size.
type Resized struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

func resize(_ context.Context, in Resize) (Resized, error) {
	if in.Width < 1 || in.Height < 1 || in.Fit < 1 {
		return Resized{}, errors.New("width, height and fit must be at least 1")
	}
	longer := max(in.Width, in.Height)
	return Resized{Width: max(1, in.Width*in.Fit/longer), Height: max(1, in.Height*in.Fit/longer)}, nil
}

func run() error {
	n, err := node.New(node.ConfigFromEnv())
	if err != nil {
		return err
	}
	node.Handle(n, "resize", resize)
	return n.RunUntilSignal(context.Background())
}

func main() {
	if err := run(); err != nil {
		slog.Error("the node ended", "error", err)
		os.Exit(1)
	}
}
