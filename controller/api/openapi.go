package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/task"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	tokenScheme = "token"
)

// humaConfig is the frame of the OpenAPI document. The document and the docs page are served by mountPages.
func humaConfig(version string) huma.Config {
	config := huma.DefaultConfig("Skalds", version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no $schema member in the answers
	config.RejectUnknownQueryParameters = true
	config.Info.Description = "Submit tasks, follow and steer them, and see the nodes that run them. Times are epoch milliseconds. " +
		"Errors are problem+json; each names the field, what it held and what is allowed. Bodies are JSON whatever Content-Type says, " +
		"and a slash at the end of a path does not matter."
	config.Tags = []*huma.Tag{
		{Name: "tasks", Description: "The tasks."},
		{Name: "nodes", Description: "The nodes that run them."},
		{Name: "system", Description: "The controller."},
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		tokenScheme: {Type: "http", Scheme: "bearer", Description: "API_TOKEN of the controller, if it has one."},
	}
	config.Security = []map[string][]string{{tokenScheme: {}}, {}}
	return config
}

func schemaOf[T any](api huma.API) *huma.Schema {
	return api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

func jsonContent[T any](api huma.API) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{jsonType: {Schema: schemaOf[T](api)}}
}

func problemContent[T any](api huma.API) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{problemType: {Schema: schemaOf[T](api)}}
}

// describeBody documents the body of a POST that decodes its body itself.
func describeBody[T any](api huma.API, path string) {
	api.OpenAPI().Paths[path].Post.RequestBody = &huma.RequestBody{Required: true, Content: jsonContent[T](api)}
}

// taskDocs say what package task, which knows nothing of this document, does not.
var taskDocs = map[string]string{
	"attachments":      "The handler's parameters.",
	"attempt":          "How often it was assigned.",
	"claimId":          "Unique id of the present assignment.",
	"createDateTime":   "Epoch milliseconds.",
	"deadlineDateTime": "Epoch milliseconds; 0 = none.",
	"desired":          "What a person asked for and the node has not yet carried out.",
	"error":            "Why the last run failed.",
	"executor":         "Id of the node that has it, or had it last.",
	"finishDateTime":   "Epoch milliseconds.",
	"incarnation":      "The run of the node's process that it was assigned to.",
	"mode":             "Passive is dispatched; Active is an edge node's own.",
	"priority":         "0..10; 10 runs first.",
	"result":           "What the handler returned.",
	"startDateTime":    "Epoch milliseconds.",
	"updateDateTime":   "Epoch milliseconds.",
}

// describeTask completes the schema of a task.
func describeTask(api huma.API) {
	schemas := api.OpenAPI().Components.Schemas
	schema := schemas.SchemaFromRef(schemaOf[task.Task](api).Ref)
	for name, text := range taskDocs {
		schema.Properties[name].Description = text
	}
	status := schema.Properties["lifecycleStatus"]
	for _, s := range task.All() {
		status.Enum = append(status.Enum, string(s))
	}
}

// describePages documents the routes that huma does not serve.
func describePages(api huma.API) {
	page := func(path, id, summary, contentType string) {
		api.OpenAPI().AddOperation(&huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"system"},
			Responses: map[string]*huma.Response{"200": {
				Description: "OK",
				Content:     map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}},
			}},
		})
	}
	page(metricsPath, "metrics", "Metrics for Prometheus", "text/plain")
	page(docsPath, "docs", "This document as a page", "text/html")
}
