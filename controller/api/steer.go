package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/task"
)

// maxSwaps is how often a change of a task is tried again because the task changed meanwhile.
const maxSwaps = 10

type statusBody struct {
	LifecycleStatus string `json:"lifecycleStatus,omitempty" doc:"Cancelled, or Created to run an ended task again; without regard to case."`
	Status          string `json:"status,omitempty" doc:"The same, under its short name."`
}

type statusInput struct {
	ID   string `path:"id" maxLength:"1024" doc:"Id of the task."`
	Body statusBody
}

type deleteInput struct {
	ID    string `path:"id" maxLength:"1024" doc:"Id of the task."`
	Purge bool   `query:"purge" doc:"Remove the task, which must have ended, instead of cancelling it."`
}

type deleteOutput struct {
	Status int
	Body   any
}

func (s *server) registerSteer(api huma.API) {
	conflicting := func(what string) map[string]*huma.Response {
		return map[string]*huma.Response{"409": {Description: what, Content: problemContent[conflict](api)}}
	}
	huma.Register(api, huma.Operation{
		OperationID: "set-task-status", Method: http.MethodPut, Path: "/api/tasks/{id}/status", Tags: []string{"tasks"},
		Summary: "Cancel a task, or run an ended one again",
		Description: "A task that no node holds is cancelled at once. For one that is on a node the wish is stored (desired), and the node " +
			"carries it out. The answer is the task as it is then.",
		BodyReadTimeout: bodyTimeout,
		Errors:          []int{http.StatusNotFound, http.StatusServiceUnavailable},
		Responses:       conflicting("The task has ended, or has not, so that this cannot be asked of it."),
	}, s.setStatus)
	huma.Register(api, huma.Operation{
		OperationID: "delete-task", Method: http.MethodDelete, Path: "/api/tasks/{id}", Tags: []string{"tasks"},
		Summary: "Cancel a task, or remove an ended one", DefaultStatus: http.StatusOK,
		Errors: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		Responses: map[string]*huma.Response{
			"200": {Description: "Cancelled, or about to be; the task as it is now.", Content: jsonContent[task.Task](api)},
			"204": {Description: "Removed (purge)."},
			"409": {Description: "The task has ended otherwise; with purge, it has not ended.", Content: problemContent[conflict](api)},
		},
	}, s.remove)
}

func (s *server) setStatus(ctx context.Context, in *statusInput) (*taskOutput, error) {
	name, location := in.Body.LifecycleStatus, "body.lifecycleStatus"
	if name == "" {
		name, location = in.Body.Status, "body.status"
	} else if in.Body.Status != "" && !strings.EqualFold(name, in.Body.Status) {
		return nil, invalid("body.status", shorten(in.Body.Status), "says something else than lifecycleStatus; give one of them")
	}
	var t *task.Task
	var err error
	switch wanted, _ := task.ParseStatus(name); wanted {
	case task.Cancelled:
		t, err = s.cancel(ctx, in.ID)
	case task.Created:
		t, err = s.retry(ctx, in.ID)
	default:
		err = invalid(location, shorten(name), "must be %s, or %s to run an ended task again", task.Cancelled, task.Created)
	}
	return &taskOutput{Body: t}, err
}

func (s *server) remove(ctx context.Context, in *deleteInput) (*deleteOutput, error) {
	if !in.Purge {
		t, err := s.cancel(ctx, in.ID)
		return &deleteOutput{Status: http.StatusOK, Body: t}, err
	}
	removed, err := s.Tasks.Purge(ctx, in.ID)
	if err != nil {
		return nil, s.failure(ctx, "to remove a task", err)
	}
	if !removed {
		t, err := s.read(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return nil, conflictWith(t, "the task is %s; only one that has ended can be removed", t.LifecycleStatus)
	}
	return &deleteOutput{Status: http.StatusNoContent}, nil
}

func (s *server) cancel(ctx context.Context, id string) (*task.Task, error) {
	return s.swap(ctx, id, func(t *task.Task) (task.Change, bool, error) {
		if t.LifecycleStatus == task.Cancelled || t.Held() && t.Desired == task.DesiredCancelled {
			return task.Change{}, false, nil
		}
		change, ok := task.Cancel(t, s.now())
		if !ok {
			return change, false, conflictWith(t, "the task is %s: it has ended and cannot be cancelled", t.LifecycleStatus)
		}
		return change, true, nil
	})
}

func (s *server) retry(ctx context.Context, id string) (*task.Task, error) {
	return s.swap(ctx, id, func(t *task.Task) (task.Change, bool, error) {
		change, ok := task.Retry(t, s.now())
		if !ok {
			return change, false, conflictWith(t, "the task is %s: only one that has ended can run again", t.LifecycleStatus)
		}
		return change, true, nil
	})
}

// swap changes a task by compare-and-set, and gives it as it is then. decide says the change for the task as it was read, whether one
// is needed at all, or why it cannot be.
func (s *server) swap(ctx context.Context, id string, decide func(*task.Task) (task.Change, bool, error)) (*task.Task, error) {
	for range maxSwaps {
		t, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		change, needed, err := decide(t)
		if err != nil || !needed {
			return t, err
		}
		applied, err := s.Tasks.Apply(ctx, []task.Change{change})
		if err != nil {
			return nil, s.failure(ctx, "to change a task", err)
		}
		if applied > 0 {
			s.Wake()
			return s.read(ctx, id)
		}
	}
	return nil, unavailable("the task changed all the while; try again")
}
