package api

import (
	"github.com/danielgtaylor/huma/v2"
)

// examples are bodies of requests, by operation. The page of the document fills them in; each is accepted by its
// operation as it stands.
var examples = map[string]any{
	"submit-task":          exampleTask,
	"submit-batch":         map[string]any{"tasks": []any{exampleTask}},
	"bulk-tasks":           map[string]any{"action": "retry", "filter": map[string]any{"lifecycleStatus": []string{"Failed"}}, "dryRun": true},
	"set-task-status":      map[string]any{"lifecycleStatus": "Cancelled"},
	"set-task-attachments": map[string]any{"text": "hello"},
	"set-dispatcher":       map[string]any{"strategy": "LEAST_TASKS"},
	"pause-dispatcher":     map[string]any{"className": "demo.echo"},
	"resume-dispatcher":    map[string]any{"className": "demo.echo"},
	"set-rate":             exampleRate,
	"set-class-rate":       exampleRate,
	"set-node-rate":        exampleRate,
	"set-namespace-limit":  map[string]any{"limit": 10},
	"set-pool":             map[string]any{"limit": 10},
}

var (
	exampleTask = map[string]any{
		"className": "demo.echo", "attachments": map[string]any{"text": "hello"}, "priority": 5, "timeoutMs": 60_000, "maxAttempts": 3,
	}
	exampleRate = map[string]any{"perSecond": 10, "burst": 20}
)

// describeExamples adds the examples to the document.
func describeExamples(api huma.API) {
	for _, item := range api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Post, item.Put} {
			if op != nil && op.RequestBody != nil {
				op.RequestBody.Content[jsonType].Example = examples[op.OperationID]
			}
		}
	}
}
