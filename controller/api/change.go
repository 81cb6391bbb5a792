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
	LifecycleStatus string `json:"lifecycleStatus,omitempty" doc:"Cancelled, Paused, Running to resume, or Created to run an ended task again; in any case."`
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

func (s taskAPI) registerChanges(api huma.API) {
	conflicting := func(what string) map[string]*huma.Response {
		return map[string]*huma.Response{"409": {Description: what, Content: problemContent[conflict](api)}}
	}
	huma.Register(api, huma.Operation{
		OperationID: "set-task-status", Method: http.MethodPut, Path: "/api/tasks/{id}/status", Tags: []string{"tasks"},
		Summary: "Cancel, pause or resume a task, or run an ended one again",
		Description: "A task that no node holds is cancelled, held back (Paused) or let wait again (Running) at once. For one that is on a node the " +
			"request is stored (desired), and the node carries it out: a pause once the handler comes to a place where it can rest; one that has no such " +
			"place runs on. Running withdraws a request that is not yet carried out, also a cancel. The answer is the task as it is then.",
		BodyReadTimeout: bodyTimeout,
		Errors:          []int{http.StatusNotFound, http.StatusServiceUnavailable},
		Responses:       conflicting("The task has ended, or has not, so that this cannot be asked of it."),
	}, bounded(s.setStatus))
	attachments := huma.Operation{
		OperationID: "set-task-attachments", Method: http.MethodPut, Path: "/api/tasks/{id}/attachments", Tags: []string{"tasks"},
		Summary: "Replace a task's attachments",
		Description: "The body is any JSON value: the new attachments as a whole; null is none. A task that waits has them when it starts. A node that holds it is " +
			"told of them, and hands them to the handler; its reports say which version it has.",
		MaxBodyBytes: s.maxBody() + 1, BodyReadTimeout: bodyTimeout,
		Errors:    []int{http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
		Responses: conflicting("The task has ended."),
	}
	huma.Register(api, attachments, bounded(s.setAttachments))
	api.OpenAPI().Paths[attachments.Path].Put.RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{Description: "Any JSON value."}}},
	}
	huma.Register(api, huma.Operation{
		OperationID: "delete-task", Method: http.MethodDelete, Path: "/api/tasks/{id}", Tags: []string{"tasks"},
		Summary: "Cancel a task, or remove an ended one", DefaultStatus: http.StatusOK,
		Errors: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		Responses: map[string]*huma.Response{
			"200": {Description: "Cancelled, or about to be; the task as it is now.", Content: jsonContent[task.Task](api)},
			"204": {Description: "Removed (purge)."},
			"409": {Description: "The task has ended otherwise; with purge, it has not ended.", Content: problemContent[conflict](api)},
		},
	}, bounded(s.remove))
}

func (s taskAPI) setStatus(ctx context.Context, in *statusInput) (*taskOutput, error) {
	name, location := in.Body.LifecycleStatus, "body.lifecycleStatus"
	if name == "" {
		name, location = in.Body.Status, "body.status"
	} else if in.Body.Status != "" && !strings.EqualFold(name, in.Body.Status) {
		return nil, invalid("body.status", shorten(in.Body.Status), "differs from lifecycleStatus; send one of them")
	}
	wanted, _ := task.ParseStatus(name)
	do, ok := actions[actionOf[wanted]]
	if !ok {
		return nil, invalid(location, shorten(name), "must be %s, %s, %s to resume, or %s to run an ended task again",
			task.Cancelled, task.Paused, task.Running, task.Created)
	}
	t, _, err := s.act(ctx, in.ID, do)
	return &taskOutput{Body: t}, err
}

func (s taskAPI) remove(ctx context.Context, in *deleteInput) (*deleteOutput, error) {
	if !in.Purge {
		t, _, err := s.act(ctx, in.ID, actions["cancel"])
		return &deleteOutput{Status: http.StatusOK, Body: t}, err
	}
	removed, err := s.Tasks.Purge(ctx, in.ID)
	if err != nil {
		return nil, s.storeFailed(ctx, "to remove a task", err)
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

// action is one thing to ask of a task. It returns the change that stores it, whether one is needed at all, or, if it
// cannot be asked, why: the text follows "the task is STATUS".
type action func(t *task.Task, now int64) (change task.Change, needed bool, why string)

// actions are what can be asked, by the names of a bulk request; actionOf is the one that leads to a status.
var (
	actions = map[string]action{
		"cancel": func(t *task.Task, now int64) (task.Change, bool, string) {
			if t.Target() == task.Cancelled {
				return task.Change{}, false, ""
			}
			change, ok := task.Cancel(t, now)
			return change, ok, unless(ok, ": it has ended and cannot be cancelled")
		},
		"pause": func(t *task.Task, now int64) (task.Change, bool, string) {
			if t.Target() == task.Cancelled && !t.LifecycleStatus.Terminal() {
				return task.Change{}, false, " and is to be cancelled: undo that first, by Running"
			}
			change, ok := task.Pause(t, now)
			return change, ok, unless(ok || t.Target() == task.Paused, ": it has ended and cannot be paused")
		},
		"resume": func(t *task.Task, now int64) (task.Change, bool, string) {
			change, ok := task.Resume(t, now)
			return change, ok, unless(ok || t.Target() == task.Running, ": it has ended; Created runs it again")
		},
		"retry": func(t *task.Task, now int64) (task.Change, bool, string) {
			change, ok := task.Retry(t, now)
			return change, ok, unless(ok, ": only one that has ended can run again")
		},
	}
	actionOf = map[task.Status]string{task.Cancelled: "cancel", task.Paused: "pause", task.Running: "resume", task.Created: "retry"}
)

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func (s taskAPI) act(ctx context.Context, id string, do action) (*task.Task, bool, error) {
	return s.swap(ctx, id, func(t *task.Task) (task.Change, bool, error) {
		change, needed, why := do(t, s.now())
		if why != "" {
			return change, false, conflictWith(t, "the task is %s%s", t.LifecycleStatus, why)
		}
		return change, needed, nil
	})
}

type attachmentsInput struct {
	ID      string `path:"id" maxLength:"1024" doc:"Id of the task."`
	RawBody []byte
}

func (s taskAPI) setAttachments(ctx context.Context, in *attachmentsInput) (*taskOutput, error) {
	if err := checkJSON(in.RawBody); err != nil {
		return nil, badJSON(err)
	}
	d := taskDecoder{maxAttachments: s.TaskMaxBytes, location: "body"}
	if d.attachments("attachments", in.RawBody); d.refusal.status != 0 {
		return nil, d.refusal.err()
	}
	attachments := d.task.Attachments
	if string(attachments) == "null" {
		attachments = nil
	}
	t, changed, err := s.swap(ctx, in.ID, func(t *task.Task) (task.Change, bool, error) {
		change, ok := task.Attach(t, attachments, s.now())
		if !ok {
			return change, false, conflictWith(t, "the task is %s: it has ended, and nobody would see new attachments", t.LifecycleStatus)
		}
		return change, true, nil
	})
	if changed {
		s.Updated(in.ID)
		s.Wake()
	}
	return &taskOutput{Body: t}, err
}

// swap changes a task by compare-and-set, and returns it as it is then, and whether it was changed. decide returns the
// change for the task as it was read, whether one is needed at all, or why it cannot be.
func (s taskAPI) swap(ctx context.Context, id string, decide func(*task.Task) (task.Change, bool, error)) (*task.Task, bool, error) {
	for range maxSwaps {
		t, err := s.read(ctx, id)
		if err != nil {
			return nil, false, err
		}
		change, needed, err := decide(t)
		if err != nil || !needed {
			return t, false, err
		}
		applied, err := s.Tasks.Apply(ctx, []task.Change{change})
		if err != nil {
			return nil, false, s.storeFailed(ctx, "to change a task", err)
		}
		if applied > 0 {
			s.Wake()
			t, err = s.read(ctx, id)
			return t, true, err
		}
	}
	return nil, false, unavailable("the task changed all the while; try again")
}
