package task_test

import (
	"fmt"

	"github.com/skalds-go/skalds/pkg/task"
)

// A task is claimed for a node, runs there, and ends; what a former claim says later changes nothing.
func Example() {
	t := task.Task{ID: "t1", ClassName: "resize", LifecycleStatus: task.Created}

	claim := task.Claim(&t, "node-1", "incarnation-1", "claim-1", 1000)
	fmt.Println(claim.Apply(&t), t.LifecycleStatus, t.Attempt)

	lost, _ := task.Lose(&t, task.LossSilent, task.DefaultPolicy(), 2000) // node-1 is gone
	fmt.Println(lost.Apply(&t), t.LifecycleStatus)

	claim = task.Claim(&t, "node-2", "incarnation-2", "claim-2", 3000)
	fmt.Println(claim.Apply(&t), t.LifecycleStatus, t.Attempt)

	for _, r := range []task.Report{
		{ID: "t1", Attempt: 1, ClaimID: "claim-1", Kind: task.ReportFinished}, // node-1 was only slow
		{ID: "t1", Attempt: 2, ClaimID: "claim-2", Kind: task.ReportFinished},
	} {
		for _, change := range r.Changes(4000) {
			fmt.Println(r.ClaimID, change.Apply(&t), t.LifecycleStatus)
		}
	}
	// Output:
	// true Assigning 1
	// true Created
	// true Assigning 2
	// claim-1 false Assigning
	// claim-2 true Finished
}

func ExampleFold() {
	reports := task.Fold([]task.Report{
		{ID: "t1", ClaimID: "c1", Kind: task.ReportStarted},
		{ID: "t2", ClaimID: "c2", Kind: task.ReportStarted},
		{ID: "t1", ClaimID: "c1", Kind: task.ReportFinished},
	})
	for _, r := range reports {
		fmt.Println(r.ID, r.Kind)
	}
	// Output:
	// t1 finished
	// t2 started
}
