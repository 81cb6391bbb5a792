package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/process"
	"github.com/skalds-go/skalds/test/proxy"
)

// A controller that is started while MongoDB is gone, or hangs, says so, and begins by itself when it is back.
func TestIntegrationAControllerIsStartedBeforeMongoDB(t *testing.T) {
	c := cluster.New(t, "4.4")
	server, err := url.Parse(c.Mongo)
	if err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]func(*proxy.Proxy){"gone": (*proxy.Proxy).Cut, "hangs": (*proxy.Proxy).Stall} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			link := proxy.New(t, server.Host)
			fault(link)
			own := *server
			own.Host = link.Addr()
			port := process.FreePort(t)
			env := c.With(map[string]string{"MONGO_HOST": own.String(), "SYSTEM_CONTROLLER_PORT": strconv.Itoa(port), "DB_NAME": "begin-" + name})
			process.Start(t, "controller", process.Build(t, cluster.Program), env, "controller")
			api := c.ClientOf(port)
			c.Eventually(time.Minute, "it says what is missing", func(ctx context.Context) (bool, string) {
				missing, err := api.Ready(ctx)
				return len(missing) == 1 && missing[0].Name == "mongodb", fmt.Sprint(missing, err)
			})
			if _, err := api.Submit(t.Context(), client.NewTask{ClassName: "demo.echo"}); !client.IsStatus(err, http.StatusServiceUnavailable) ||
				!strings.Contains(err.Error(), "mongodb") {
				t.Errorf("a submit gave %v", err)
			}
			link.Restore()
			c.Ready(api)
			if _, err := api.Submit(t.Context(), client.NewTask{ClassName: "demo.echo"}); err != nil {
				t.Error(err)
			}
		})
	}
}
