package api_test

import (
	"net/http"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
)

func TestANodeThatIsSetAsideSaysWhy(t *testing.T) {
	t.Parallel()
	why := client.Cordon{Reason: "it is deaf", Since: 1, Until: 2}
	f := newFixture(t, func(d *api.Deps) {
		d.SetAside = func(node string) *client.Cordon {
			if node != "n2" {
				return nil
			}
			return &why
		}
	})
	f.nodes.list = []registry.Node{{ID: "n1", Incarnation: "a"}, {ID: "n2", Incarnation: "b"}}
	page := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds", ""), http.StatusOK)
	if len(page.Items) != 2 || page.Items[0].Cordon != nil || page.Items[1].Cordon == nil || *page.Items[1].Cordon != why {
		t.Errorf("%+v", page.Items)
	}
	if one := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n2", ""), http.StatusOK); one.Cordon == nil || *one.Cordon != why {
		t.Errorf("%+v", one.Cordon)
	}
}
