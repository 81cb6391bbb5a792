package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/skalds-go/skalds/pkg/store/sqlite"
	"github.com/skalds-go/skalds/pkg/task"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "skalds")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for range 2 { // the second one finds what the first one has stored
		s, err := sqlite.Open(ctx, filepath.Join(dir, "skalds.db"), sqlite.Options{Sync: sqlite.SyncNormal})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := s.Create(ctx, []task.Task{{ID: "t1", ClassName: "resize", Mode: task.ModePassive, LifecycleStatus: task.Created}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("exists:", out[0].Existing != nil)
		if err := s.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// exists: false
	// exists: true
}
