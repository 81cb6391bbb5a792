package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
)

// Before the store has ever answered, each call says that it is missing.
func TestEachCallNamesTheStoreThatWasNeverThere(t *testing.T) {
	t.Parallel()
	handler := api.Waiting(mongodb)
	for _, call := range calls {
		t.Run(call.method+" "+call.path, func(t *testing.T) {
			t.Parallel()
			res := httptest.NewRecorder()
			handler.ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), call.method, call.path, strings.NewReader(call.body)))
			switch call.path {
			case "/livez":
				want[any](t, res, http.StatusOK)
			case "/readyz":
				got := want[client.Readiness](t, res, http.StatusServiceUnavailable)
				if got.Status != "not ready" || len(got.NotReady) != 1 || got.NotReady[0].Name != mongodb {
					t.Errorf("%+v", got)
				}
			default:
				wantUnavailable(t, call.path, res, mongodb)
			}
		})
	}
}
