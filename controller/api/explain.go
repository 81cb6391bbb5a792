package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
)

type explainInput struct {
	ID string `path:"id" maxLength:"1024" doc:"Id of the task."`
}

type explainOutput struct {
	Body client.Explanation
}

type pendingOutput struct {
	Body client.Pending
}

func (s taskAPI) registerExplain(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "explain-task", Method: http.MethodGet, Path: "/api/tasks/{id}/explain", Tags: []string{"tasks"},
		Summary:     "Say why a task is where it is",
		Description: "Or why it waits, and what would help. A controller that does not lead asks the one that does.",
		Errors:      []int{http.StatusNotFound, http.StatusServiceUnavailable},
	}, bounded(s.explain))
	huma.Register(api, huma.Operation{
		OperationID: "get-pending", Method: http.MethodGet, Path: "/api/system/pending", Tags: []string{"system"},
		Summary:     "Group all tasks that wait by reason",
		Description: "It counts them all, so it is for people, not for loops. A controller that does not lead asks the one that does.",
		Errors:      []int{http.StatusServiceUnavailable},
	}, bounded(s.pending))
}

func (s taskAPI) explain(ctx context.Context, in *explainInput) (*explainOutput, error) {
	found, err := s.Tasks.Get(ctx, []string{in.ID})
	if err != nil {
		return nil, s.storeFailed(ctx, "to read a task", err)
	}
	if len(found) == 0 {
		return nil, notFound("task", in.ID)
	}
	e, err := s.Backend.Explain(ctx, &found[0])
	if err != nil {
		return nil, s.leaderFailed(ctx, "to explain a task", err)
	}
	return &explainOutput{Body: e}, nil
}

func (s taskAPI) pending(ctx context.Context, _ *struct{}) (*pendingOutput, error) {
	p, err := s.Backend.Pending(ctx)
	if err != nil {
		return nil, s.leaderFailed(ctx, "to group what waits", err)
	}
	return &pendingOutput{Body: p}, nil
}

// leaderFailed turns an error of what only the leader knows into an answer.
func (s *server) leaderFailed(ctx context.Context, doing string, err error) error {
	var unknown *NoLeaderError
	switch {
	case client.IsStatus(err, http.StatusNotFound):
		return problem(http.StatusNotFound, err.Error())
	case errors.As(err, &unknown):
		s.Log.WarnContext(ctx, "api: no leader", "doing", doing, "error", err)
		return unavailable(err.Error() + " (" + doing + "); try again")
	}
	return s.storeFailed(ctx, doing, err)
}
