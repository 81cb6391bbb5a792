package api

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// maxBatch is how many tasks a batch may hold.
	maxBatch = store.MaxBatch
	// maxBatchBody is how large the body of a batch may be, in bytes.
	maxBatchBody = 64 << 20
	// bodySlack is what a body may hold beside attachments.
	bodySlack = 64 << 10
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 30 * time.Second
)

// maxBody is how large any other body may be: attachments may come with white space.
func (s *server) maxBody() int64 { return 2*int64(s.TaskMaxBytes) + bodySlack }

type rawInput struct {
	RawBody []byte
}

type submitOutput struct {
	Status   int
	Location string `header:"Location" doc:"Address of the task."`
	Body     *task.Task
}

// batch is the body of a batch, and batchResult its answer.
type batch struct {
	Tasks []client.NewTask `json:"tasks" nullable:"false" minItems:"1" maxItems:"1000"`
}

type batchResult struct {
	Items []client.BatchItem `json:"items" nullable:"false" doc:"One for each task, in the same order."`
}

type batchOutput struct {
	Body batchResult
}

func (s taskAPI) registerSubmit(api huma.API) {
	single := huma.Operation{
		OperationID: "submit-task", Method: http.MethodPost, Path: "/api/tasks", Tags: []string{"tasks"},
		Summary: "Submit a task",
		Description: "Stores a task and answers 201 with it. The id of a task that exists gets 409 with that task; " +
			"the idempotencyKey of one that exists gets 200 with that one.",
		DefaultStatus: http.StatusCreated, MaxBodyBytes: s.maxBody() + 1, BodyReadTimeout: bodyTimeout,
		Errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
			http.StatusTooManyRequests, http.StatusServiceUnavailable},
		Responses: map[string]*huma.Response{
			"200": {Description: "A task with this idempotency key exists; nothing was stored.", Content: jsonContent[task.Task](api)},
			"409": {Description: "A task with this id exists.", Content: problemContent[conflict](api)},
		},
	}
	huma.Register(api, single, bounded(s.submit))
	describeBody[client.NewTask](api, single.Path)

	many := huma.Operation{
		OperationID: "submit-batch", Method: http.MethodPost, Path: "/api/tasks/batch", Tags: []string{"tasks"},
		Summary: "Submit up to 1,000 tasks",
		Description: "Each task is stored or refused for itself; the answer has the status of each, in the same order. " +
			"A body may have up to 64 MiB.",
		MaxBodyBytes: maxBatchBody + 1, BodyReadTimeout: bodyTimeout,
		Errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
			http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}
	huma.Register(api, many, bounded(s.submitBatch))
	describeBody[batch](api, many.Path)
}

func (s taskAPI) submit(ctx context.Context, in *rawInput) (*submitOutput, error) {
	if err := checkJSON(in.RawBody); err != nil {
		s.metrics.submitted(submitInvalid, 1)
		return nil, badJSON(err)
	}
	d := taskDecoder{maxAttachments: s.TaskMaxBytes}
	t, refused := d.decode(bytes.TrimSpace(in.RawBody), "body")
	if refused.status != 0 {
		s.metrics.submitted(outcomeOf(refused.status), 1)
		return nil, refused.err()
	}
	s.stamp(&t)
	if err := s.admit(ctx, []task.Task{t}); err != nil {
		s.metrics.submitted(outcomeOf(statusOf(err)), 1)
		return nil, err
	}
	outcomes, err := s.Tasks.Create(ctx, []task.Task{t})
	if err == nil && outcomes[0].Status == store.CreateFailed {
		err = outcomes[0].Err
	}
	if err != nil {
		s.metrics.submitted(submitError, 1)
		return nil, s.storeFailed(ctx, "to store a task", err)
	}
	status := createdStatus(outcomes[0].Status)
	s.metrics.submitted(outcomeOf(status), 1)
	switch status {
	case http.StatusConflict:
		return nil, conflictWith(outcomes[0].Existing, "a task with the id %q exists", t.ID)
	case http.StatusOK:
		t = *outcomes[0].Existing
	default:
		s.Wake()
	}
	return &submitOutput{Status: status, Location: "/api/tasks/" + url.PathEscape(t.ID), Body: &t}, nil
}

func (s taskAPI) submitBatch(ctx context.Context, in *rawInput) (*batchOutput, error) {
	texts, err := splitBatch(in.RawBody, maxBatch)
	if err != nil {
		s.metrics.submitted(submitInvalid, 1)
		return nil, err
	}
	items := make([]client.BatchItem, len(texts))
	tasks := make([]task.Task, 0, len(texts))
	places := make([]int, 0, len(texts)) // of each task in items
	d := taskDecoder{maxAttachments: s.TaskMaxBytes}
	for i, text := range texts {
		t, refused := d.decode(text, "task")
		if refused.status != 0 {
			items[i] = client.BatchItem{ID: t.ID, Status: refused.status, Error: refused.text()}
			continue
		}
		s.stamp(&t)
		tasks = append(tasks, t)
		places = append(places, i)
	}
	if len(tasks) > 0 {
		if err := s.admit(ctx, tasks); err != nil {
			s.metrics.submitted(outcomeOf(statusOf(err)), len(tasks))
			return nil, err
		}
		outcomes, err := s.Tasks.Create(ctx, tasks)
		if err != nil {
			s.metrics.submitted(submitError, len(tasks))
			return nil, s.storeFailed(ctx, "to store a batch of tasks", err)
		}
		for n := range outcomes {
			items[places[n]] = s.itemOf(ctx, &tasks[n], &outcomes[n])
		}
	}
	stored := 0
	counts := map[string]int{}
	for i := range items {
		if items[i].Status == http.StatusCreated {
			stored++
		}
		counts[outcomeOf(items[i].Status)]++
	}
	for outcome, n := range counts {
		s.metrics.submitted(outcome, n)
	}
	if stored > 0 {
		s.Wake()
	}
	return &batchOutput{Body: batchResult{Items: items}}, nil
}

// stamp makes a task that was read a new one of this moment.
func (s taskAPI) stamp(t *task.Task) {
	if t.ID == "" {
		t.ID = s.NewID()
	}
	t.CreateDateTime = s.now()
	t.UpdateDateTime = t.CreateDateTime
}

// itemOf says what became of one task of a batch.
func (s taskAPI) itemOf(ctx context.Context, t *task.Task, outcome *store.CreateOutcome) client.BatchItem {
	item := client.BatchItem{ID: t.ID, Status: createdStatus(outcome.Status)}
	switch outcome.Status {
	case store.CreateOK:
	case store.CreateExists:
		item.Error = "a task with this id exists"
	case store.CreateSameKey:
		item.ID = outcome.Existing.ID
	case store.CreateFailed:
		err := s.storeFailed(ctx, "to store a task of a batch", outcome.Err)
		item.Error = err.Error()
		item.Status = statusOf(err)
	}
	return item
}

// createdStatus is the HTTP status for what became of a task.
func createdStatus(s store.CreateStatus) int {
	switch s {
	case store.CreateOK:
		return http.StatusCreated
	case store.CreateExists:
		return http.StatusConflict
	case store.CreateSameKey:
		return http.StatusOK
	case store.CreateFailed:
	}
	return http.StatusInternalServerError
}
