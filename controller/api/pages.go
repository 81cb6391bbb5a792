package api

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
)

const (
	metricsPath = "/metrics"
	openAPIPath = "/api/openapi.json"
	docsPath    = "/api/docs"

	// maxScrapes is how many scrapes of the metrics run at once.
	maxScrapes = 4
	// docsPolicy lets the docs page load nothing from elsewhere.
	docsPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
)

// mountPages serves what is not a call: the metrics, the OpenAPI document, and the page that shows it, all from the
// binary.
func (s *server) mountPages(mux *http.ServeMux, api huma.API) {
	describeTask(api)
	describePages(api)
	describeExamples(api)
	document, err := json.Marshal(api.OpenAPI())
	if err != nil {
		panic("api: the OpenAPI document does not encode: " + err.Error()) // the same for every start; a test sees it
	}
	mux.HandleFunc("GET "+openAPIPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(document) // the client may be gone
	})
	docs := v5emb.NewHandlerWithConfig(swgui.Config{Title: "Skalds", SwaggerJSON: openAPIPath, BasePath: docsPath})
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", docsPolicy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		docs.ServeHTTP(w, r)
	})
	mux.Handle("GET "+docsPath, page)
	mux.Handle("GET "+docsPath+"/", page)
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
}
