package embedded_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/embedded"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asBroker); dir != "" {
		runBroker(dir)
	}
	goleak.VerifyTestMain(m)
}

// servers are what both kinds have in common.
var servers = map[string]func(port int) (addr string, stop func(), err error){
	"kafka": func(port int) (string, func(), error) {
		k, err := embedded.StartKafka(embedded.KafkaConfig{Port: port})
		if err != nil {
			return "", nil, err
		}
		return k.Addr(), k.Close, nil
	},
	"redis": func(port int) (string, func(), error) {
		r, err := embedded.StartRedis(embedded.RedisConfig{Port: port})
		if err != nil {
			return "", nil, err
		}
		return r.Addr(), r.Close, nil
	},
}

func TestTakenPortIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
			port := taken.Addr().(*net.TCPAddr).Port

			_, stop, err := start(port)
			if err == nil {
				stop()
				t.Fatal("started on a port that is taken")
			}
			if want := "port " + strconv.Itoa(port); !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		})
	}
}

func TestListensOnLoopbackAtThePortAsked(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, stop, err := start(0)
			if err != nil {
				t.Fatal(err)
			}
			host, port, err := net.SplitHostPort(first)
			if err != nil || host != "127.0.0.1" || port == "0" {
				t.Errorf("listens at %q", first)
			}
			stop()
			stop()
			if c, err := net.Dial("tcp", first); err == nil {
				_ = c.Close()
				t.Error("still listens after Close")
			}

			n, _ := strconv.Atoi(port)
			second, stop, err := start(n)
			if err != nil {
				t.Fatalf("start again at the port that was given up: %v", err)
			}
			defer stop()
			if second != first {
				t.Errorf("asked for port %d, listens at %s", n, second)
			}
		})
	}
}

func TestStartAndStopLeaveNoGoroutine(t *testing.T) { // not parallel: it counts goroutines
	before := goleak.IgnoreCurrent()
	for name, start := range servers {
		for range 20 {
			_, stop, err := start(0)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			stop()
		}
	}
	goleak.VerifyNone(t, before)
}

// TestDataIsNotWrittenToDisk guards the promise that both hold their data in memory, unless told where else.
func TestDataIsNotWrittenToDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, start := range servers {
		_, stop, err := start(0)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(wd, "*")); len(files) > 0 {
		t.Errorf("left files: %v", files)
	}
}
