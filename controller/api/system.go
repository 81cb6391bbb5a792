package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/client"
)

type dispatcherBody struct {
	Body client.Dispatcher
}

type readinessOutput struct {
	Status int
	Body   client.Readiness
}

type livenessOutput struct {
	Body struct {
		Status string `json:"status" enum:"alive"`
	}
}

func (s dispatcherAPI) registerSystem(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-dispatcher", Method: http.MethodGet, Path: "/api/system/dispatcher", Tags: []string{"system"},
		Summary: "Say what the dispatcher does",
		Errors:  []int{http.StatusServiceUnavailable},
	}, bounded(func(ctx context.Context, _ *struct{}) (*dispatcherBody, error) { return s.dispatcher(ctx) }))
	huma.Register(api, huma.Operation{
		OperationID: "set-dispatcher", Method: http.MethodPut, Path: "/api/system/dispatcher", Tags: []string{"system"},
		Summary: "Change the dispatcher's strategy",
		Description: "All controllers use it from the next round on, also after a restart. What else the answer of GET holds may be sent " +
			"along; it changes nothing.",
		BodyReadTimeout: bodyTimeout,
		Errors:          []int{http.StatusServiceUnavailable},
	}, bounded(s.setDispatcher))
	huma.Register(api, huma.Operation{
		OperationID: "livez", Method: http.MethodGet, Path: livePath, Tags: []string{"system"},
		Summary: "Say that the process is alive", Security: []map[string][]string{},
	}, func(context.Context, *struct{}) (*livenessOutput, error) {
		out := &livenessOutput{}
		out.Body.Status = "alive"
		return out, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "readyz", Method: http.MethodGet, Path: readyPath, Tags: []string{"system"},
		Summary: "Say whether the controller is ready, or what is missing", Security: []map[string][]string{},
		Responses: map[string]*huma.Response{"503": {Description: "Not ready.", Content: jsonContent[client.Readiness](api)}},
	}, bounded(s.ready))
}

func (s dispatcherAPI) dispatcher(ctx context.Context) (*dispatcherBody, error) {
	status, err := s.Backend.Status(ctx)
	if err != nil {
		return nil, s.storeFailed(ctx, "to read the dispatcher's state", err)
	}
	return &dispatcherBody{Body: status}, nil
}

func (s dispatcherAPI) setDispatcher(ctx context.Context, in *dispatcherBody) (*dispatcherBody, error) {
	strategy, ok := placement.ParseStrategy(in.Body.Strategy)
	if !ok {
		return nil, invalid("body.strategy", shorten(in.Body.Strategy), "must be one of %v, without regard to case", placement.Strategies())
	}
	if err := s.Backend.SetStrategy(ctx, string(strategy)); err != nil {
		return nil, s.storeFailed(ctx, "to change the strategy", err)
	}
	return s.dispatcher(ctx)
}

func (s dispatcherAPI) ready(ctx context.Context, _ *struct{}) (*readinessOutput, error) {
	missing := s.Backend.NotReady(ctx)
	if len(missing) > 0 {
		return &readinessOutput{Status: http.StatusServiceUnavailable, Body: client.Readiness{Status: "not ready", NotReady: missing}}, nil
	}
	return &readinessOutput{Status: http.StatusOK, Body: client.Readiness{Status: "ready"}}, nil
}
