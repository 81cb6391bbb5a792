package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
)

func TestDrainANode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.nodes.list = []registry.Node{{ID: "n1", Incarnation: "i"}}
	want[struct{}](t, f.do(t, http.MethodPost, "/api/skalds/n1/drain", ""), http.StatusNoContent)
	wantProblem(t, f.do(t, http.MethodPost, "/api/skalds/n2/drain", ""), http.StatusNotFound, "n2")
	want[struct{}](t, f.do(t, http.MethodPost, "/api/skalds/n2/undrain", ""), http.StatusNoContent)
	if !slices.Equal(f.disp.drained, []string{"n1 true", "n2 false"}) {
		t.Errorf("told %v", f.disp.drained)
	}
	f.disp.err = fmt.Errorf("store: %w", store.ErrTooMany)
	wantProblem(t, f.do(t, http.MethodPost, "/api/skalds/n1/drain", ""), http.StatusUnprocessableEntity, "1000", "undrain")
	f.disp.err = store.ErrUnavailable
	wantProblem(t, f.do(t, http.MethodPost, "/api/skalds/n1/undrain", ""), http.StatusServiceUnavailable)
	f.nodes.err = registry.ErrUnavailable
	wantProblem(t, f.do(t, http.MethodPost, "/api/skalds/n1/drain", ""), http.StatusServiceUnavailable)
}
