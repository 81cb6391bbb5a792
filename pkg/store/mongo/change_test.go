package mongo

import (
	"encoding/json"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/task"
)

// TestTranslate shows the filter and the update of some changes; that they mean what task.Change.Apply does is for
// storetest to prove.
func TestTranslate(t *testing.T) {
	t.Parallel()
	first := task.Task{ID: "t1", LifecycleStatus: task.Created}
	permitted := task.Claim(&first, "n1", "i1", "c1", 9)
	permitted.Assign.KeyPermit, permitted.Assign.PoolPermit = "k#0", "p#1"
	running := task.Task{ID: "t1", LifecycleStatus: task.Running, Attempt: 2, ClaimID: "c2", Executor: "n1"}
	lost, _ := task.Lose(&running, task.LossSilent, task.DefaultPolicy(), 9)
	cancelled := running
	cancelled.Desired = task.DesiredCancelled
	undo, _ := task.Resume(&cancelled, 9)
	failed := running
	failed.LifecycleStatus = task.Failed
	retry, _ := task.Retry(&failed, 9)
	finished := task.Report{ID: "t1", Attempt: 2, ClaimID: "c2", Kind: task.ReportFinished, StartedAt: 7, FinishedAt: 8,
		Result: json.RawMessage(`{"n":[1,2.0]}`), Progress: &task.Progress{Percent: 100}}
	cases := []struct {
		name           string
		c              task.Change
		filter, update string
	}{
		{
			"first claim", task.Claim(&first, "n1", "i1", "c1", 9),
			`{"id":"t1","lifecycleStatus":"Created","attempt":{"$in":[0,null]},"claimId":{"$in":["",null]}}`,
			`{"$set":{"executor":"n1","updateDateTime":9,"lifecycleStatus":"Assigning","attempt":1,"claimId":"c1","incarnation":"i1","assignedDateTime":9},` +
				`"$unset":{"keyPermit":"","poolPermit":"","startDateTime":"","error":"","progress":""}}`,
		},
		{
			"claim with permits", permitted,
			`{"id":"t1","lifecycleStatus":"Created","attempt":{"$in":[0,null]},"claimId":{"$in":["",null]}}`,
			`{"$set":{"executor":"n1","updateDateTime":9,"lifecycleStatus":"Assigning","attempt":1,"claimId":"c1","incarnation":"i1",` +
				`"keyPermit":"k#0","poolPermit":"p#1","assignedDateTime":9},"$unset":{"startDateTime":"","error":"","progress":""}}`,
		},
		{
			"loss", lost,
			`{"id":"t1","lifecycleStatus":"Running","attempt":2,"claimId":"c2","desired":{"$in":["",null]}}`,
			`{"$set":{"updateDateTime":9,"lifecycleStatus":"Created"},"$unset":{"executor":"","incarnation":"","keyPermit":"","poolPermit":"","desired":""},` +
				`"$push":{"attempts":{"$each":[{"attempt":2,"executor":"n1","finishDateTime":9,"outcome":"lost"}],"$slice":-20}}}`,
		},
		{
			"report", finished.Changes(9)[0],
			`{"id":"t1","lifecycleStatus":{"$in":["Assigning","Running","Paused"]},"attempt":2,"claimId":"c2"}`,
			`{"$set":{"updateDateTime":9,"lifecycleStatus":"Finished","startDateTime":7,"finishDateTime":8,"result":{"n":[1,2.0]},"progress":{"percent":100.0}},` +
				`"$unset":{"keyPermit":"","poolPermit":"","desired":""},"$push":{"attempts":{"$each":[` +
				`{"attempt":2,"executor":"","startDateTime":7,"finishDateTime":8,"outcome":"finished"}],"$slice":-20}}}`,
		},
		{
			"undo", undo,
			`{"id":"t1","lifecycleStatus":"Running","attempt":2,"claimId":"c2","desired":"Cancelled"}`,
			`{"$set":{"updateDateTime":9,"lifecycleStatus":"Running"},"$unset":{"desired":""}}`,
		},
		{
			"retry", retry,
			`{"id":"t1","lifecycleStatus":"Failed","attempt":2,"claimId":"c2"}`,
			`{"$set":{"updateDateTime":9,"lifecycleStatus":"Created","notBefore":0},"$unset":{"executor":"","incarnation":"","failures":"","crashes":"","keyPermit":"","poolPermit":"",` +
				`"assignedDateTime":"","startDateTime":"","finishDateTime":"","result":"","error":"","progress":"","desired":""}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			filter, update := translate(&c.c)
			for _, part := range []struct {
				name, want string
				got        bson.Raw
			}{{"filter", c.filter, filter}, {"update", c.update, update}} {
				got, err := bson.MarshalExtJSON(part.got, false, false)
				if err != nil || string(got) != part.want {
					t.Errorf("%s, error %v\ngot  %s\nwant %s", part.name, err, got, part.want)
				}
			}
		})
	}
}
