package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// expiryInterval is how often keys age. The library does not age keys by itself, so this is also how late a key may
// expire.
const expiryInterval = 100 * time.Millisecond

// RedisConfig configures the embedded Redis server.
type RedisConfig struct {
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
}

// Redis is one Redis server in this process.
type Redis struct {
	server  *miniredis.Miniredis
	addr    string
	stop    chan struct{}
	stopped chan struct{}
	close   sync.Once
}

// StartRedis starts an empty server. Keys expire in real time, at most 100 ms late. Like a real server it names its
// run in `INFO server` (run_id), so that a client notices a restart, after which the data may be gone.
func StartRedis(cfg RedisConfig) (*Redis, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(net.JoinHostPort(loopback, strconv.Itoa(cfg.Port))); err != nil {
		return nil, fmt.Errorf("start the embedded redis server on port %d: %w", cfg.Port, err)
	}
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails
	m.Server().SetPreHook(infoServer(serverInfo{runID: hex.EncodeToString(id), port: m.Port(), started: time.Now()}))

	r := &Redis{server: m, addr: m.Addr(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go r.age()
	return r, nil
}

// Addr returns host:port of the server.
func (r *Redis) Addr() string { return r.addr }

// Close stops the server, drops its data and waits until its goroutines have ended. Further calls do nothing.
func (r *Redis) Close() {
	r.close.Do(func() {
		close(r.stop)
		<-r.stopped
		r.server.Close()
	})
}

// age moves the keys' time forward by the time that has passed, so that a late tick does not stretch their lives.
func (r *Redis) age() {
	defer close(r.stopped)
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			now := time.Now()
			r.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

type serverInfo struct {
	runID   string
	port    string
	started time.Time
}

// infoServer answers INFO without a section and `INFO server`, which the library does not know. The library answers
// everything else.
func infoServer(info serverInfo) server.Hook {
	return func(peer *server.Peer, cmd string, args ...string) bool {
		if cmd != "INFO" || len(args) > 1 {
			return false
		}
		if len(args) == 1 {
			switch strings.ToLower(args[0]) {
			case "server", "default", "all", "everything":
			default:
				return false
			}
		}
		peer.WriteBulk(info.String())
		return true
	}
}

func (i serverInfo) String() string {
	uptime := int64(time.Since(i.started) / time.Second)
	return fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nprocess_id:%d\r\nrun_id:%s\r\n"+
		"tcp_port:%s\r\nuptime_in_seconds:%d\r\n", os.Getpid(), i.runID, i.port, uptime)
}
