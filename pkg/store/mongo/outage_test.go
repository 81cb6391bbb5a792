package mongo

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/services"
)

// proxy stands between a client and a server. While it drops replies, requests reach the server, and the connection
// ends instead of the answer.
type proxy struct {
	listener net.Listener
	target   string
	drop     atomic.Bool
	wg       sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() })
	return p
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	defer func() { _ = client.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || p.drop.Load() {
			_ = server.Close()
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			_ = server.Close()
			return
		}
	}
}

// TestIntegrationC30_LostReply: the claim reached the server, its reply got lost. The outcome is unknown; the same
// claim again does not claim twice, and whoever reads finds its own claim id.
func TestIntegrationC30_LostReply(t *testing.T) {
	t.Parallel()
	uri := services.Mongo(t)
	host := strings.Trim(strings.TrimPrefix(uri, "mongodb://"), "/")
	p := newProxy(t, host)
	direct := open(t, uri)
	tasks := make([]task.Task, 3)
	claims := make([]task.Change, 3)
	for i := range tasks {
		id := string(rune('a' + i))
		tasks[i] = task.Task{ID: id, ClassName: "x", LifecycleStatus: task.Created, Mode: task.ModePassive}
		claims[i] = task.Claim(&tasks[i], "n1", "i1", "claim-"+id, 1)
	}
	if _, err := direct.Create(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	through, err := Open(t.Context(), "mongodb://"+p.listener.Addr().String()+"/?retryWrites=false&retryReads=false", direct.tasks.Database().Name())
	if err != nil {
		t.Fatal(err)
	}
	p.drop.Store(true)
	n, err := through.Apply(t.Context(), claims)
	if n != 0 || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("the reply got lost: %d applied, error %v", n, err)
	}
	p.drop.Store(false)
	if n, err := through.Apply(t.Context(), claims); n != 0 || err != nil {
		t.Errorf("once more: %d applied, error %v", n, err)
	}
	got, err := through.Get(t.Context(), []string{"a", "b", "c"})
	if err != nil || len(got) != 3 {
		t.Fatalf("get: %v, %v", got, err)
	}
	for _, tk := range got {
		if tk.ClaimID != "claim-"+tk.ID || tk.Attempt != 1 || tk.LifecycleStatus != task.Assigning {
			t.Errorf("it is %+v", tk)
		}
	}
	if err := through.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestUnreachable: a server that is not there is store.ErrUnavailable, and the error says what to look at.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), "mongodb://"+addr+"/?serverSelectionTimeoutMS=50", "x")
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "MONGO_HOST") || !strings.Contains(err.Error(), "database x") {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][3]string{
		"no database":      {"mongodb://127.0.0.1:1", "", "DB_NAME"},
		"not a URI":        {"127.0.0.1:1", "x", "MONGO_HOST"},
		"unknown protocol": {"http://127.0.0.1", "x", "MONGO_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Open(t.Context(), c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
				t.Errorf("error %v; want it to name %s", err, c[2])
			}
		})
	}
}

// TestIndexKeys: no index is there twice, and doc.go lists them all.
func TestIndexKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, index := range indexes() {
		b, err := bson.MarshalExtJSON(index.Keys, false, false)
		if err != nil || seen[string(b)] {
			t.Errorf("index %s twice, or error %v", b, err)
		}
		seen[string(b)] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d indexes; doc.go lists 10", len(seen))
	}
}
