package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		username, password string
		ok                 bool
	}{
		{"right", "ann", "secret", true},
		{"none", "", "", false},
		{"wrong", "ann", "wr0ng", false},
		{"no username", "", "secret", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			f.RequireUserAuth("ann", "secret")
			r := open(t, Config{Addrs: []string{f.Addr()}, Username: tt.username, Password: tt.password})
			err := r.Heartbeat(t.Context(), registrytest.Example("n1", "i", 1))
			switch {
			case tt.ok && err != nil:
				t.Error(err)
			case !tt.ok && (err == nil || !strings.Contains(err.Error(), "REDIS_PASSWORD") || errors.Is(err, registry.ErrUnavailable)):
				t.Errorf("error = %v", err)
			case !tt.ok && tt.password != "" && strings.Contains(err.Error(), tt.password):
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // only its certificate is of use
	t.Cleanup(web.Close)
	m := miniredis.NewMiniRedis()
	if err := m.StartTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	trusting := open(t, Config{Addrs: []string{m.Addr()}, TLS: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}})
	heartbeat(t, trusting, "n1", "i", 1)
	doubting := open(t, Config{Addrs: []string{m.Addr()}, TLS: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}})
	if err := doubting.Ping(t.Context()); !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("ping of a server with an unknown certificate: %v", err)
	}
}

// A server that takes the connection and never answers costs a call its timeout and no more.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := open(t, Config{Addrs: []string{listener.Addr().String()}, Timeout: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Heartbeat(ctx, registrytest.Example("n1", "i", 1)); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("heartbeat: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("the call took as long as its caller's context")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"no address", Config{}, "no redis address"},
		{"two addresses", Config{Addrs: []string{"a:1", "b:1"}}, "a:1, b:1"},
		{"cluster and sentinel", Config{Addrs: []string{"a:1"}, Cluster: true, SentinelMaster: "m"}, "both"},
		{"cluster with replicas", Config{Addrs: []string{"a:1"}, Cluster: true, WaitReplicas: 1}, "WaitReplicas 1"},
		{"negative replicas", Config{Addrs: []string{"a:1"}, WaitReplicas: -1}, "at least 0"},
		{"cluster with a database", Config{Addrs: []string{"a:1"}, Cluster: true, DB: 3}, "database 0, not 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Open(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func ExampleOpen() {
	r, err := Open(Config{Addrs: []string{"127.0.0.1:1"}, Timeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = r.Close() }()
	fmt.Println(errors.Is(r.Ping(context.Background()), registry.ErrUnavailable))
	// Output: true
}
