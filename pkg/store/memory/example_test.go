package memory_test

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

func ExampleNew() {
	ctx := context.Background()
	s := memory.New()
	_, err := s.Create(ctx, []task.Task{{ID: "t1", ClassName: "resize", Mode: task.ModePassive, LifecycleStatus: task.Created}})
	if err != nil {
		fmt.Println(err)
		return
	}
	queues, err := s.Queues(ctx, "", 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := s.Waiting(ctx, queues.Names[0], store.Place{}, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	claim := task.Claim(&page.Tasks[0], "node-1", "incarnation-1", "claim-1", 1000)
	for range 2 { // the second one finds the task claimed
		n, err := s.Apply(ctx, []task.Change{claim})
		fmt.Println(n, err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}
