package chaos_test

import (
	"net/url"
	"strconv"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/test/chaos/crash"
	"github.com/skalds-go/skalds/test/chaos/history"
	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/process"
	"github.com/skalds-go/skalds/test/proxy"
)

// kind is what a member is.
type kind uint8

const (
	node kind = iota
	controller
)

// The services, as links are named.
const (
	toKafka = "kafka"
	toRedis = "redis"
	toStore = "store"
)

// member is one of the processes, over all its restarts.
type member struct {
	w      *world
	name   string
	kind   kind
	env    map[string]string
	links  map[string]*proxy.Proxy // by service
	armed  string                  // of a controller that can be crashed: the file that arms it; empty = it is the real program
	api    *client.Client          // of a controller
	proc   *process.Process        // the present or last one
	frozen bool
	ending bool      // proc was told to end
	began  time.Time // when proc was started
}

func newMember(w *world, k kind, name string, server *url.URL) *member {
	w.T.Helper()
	m := &member{w: w, name: name, kind: k, env: map[string]string{}, links: map[string]*proxy.Proxy{
		toKafka: proxy.Kafka(w.T, w.Kafka.Addr()), toRedis: proxy.New(w.T, w.Redis.Addr()),
	}}
	cluster.HostPort(w.T, m.env, "KAFKA", m.links[toKafka].Addr())
	cluster.HostPort(w.T, m.env, "REDIS", m.links[toRedis].Addr())
	if k == controller {
		m.links[toStore] = proxy.New(w.T, server.Host)
		own := *server
		own.Host = m.links[toStore].Addr()
		m.env["MONGO_HOST"] = own.String()
		port := process.FreePort(w.T)
		m.env["SYSTEM_CONTROLLER_PORT"] = strconv.Itoa(port)
		m.api = w.ClientOf(port)
	} else {
		m.env["SKALD_ID"] = name
		m.env["MONGO_HOST"] = "mongodb://nowhere.invalid" // it is not for nodes
	}
	return m
}

// start starts the member's process, which lives beyond the present subtest. Another one of it must have ended.
func (m *member) start() {
	m.w.T.Helper()
	m.began, m.ending = time.Now(), false
	switch {
	case m.kind == node:
		m.proc = process.Start(m.w.root, m.name, process.Build(m.w.root, "test/chaos/worker"), m.w.With(m.env))
	case m.armed != "":
		env := m.w.With(m.env, map[string]string{crash.FileEnv: m.armed})
		m.proc = process.Start(m.w.root, m.name, process.Build(m.w.root, "test/chaos/crasher"), env)
	default:
		m.proc = process.Start(m.w.root, m.name, process.Build(m.w.root, cluster.Program), m.w.With(m.env), "controller")
	}
}

// kill ends the process by SIGKILL.
func (m *member) kill() {
	m.ending = true
	m.proc.Kill()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.noteEnd()
}

// terminate asks the process to end.
func (m *member) terminate() {
	m.ending = true
	m.proc.Terminate()
}

// noteEnd notes when the process had ended. The world is locked.
func (m *member) noteEnd() {
	if m.proc == nil || m.proc.Running() {
		return
	}
	m.frozen = false
	if _, known := m.w.gone[m.proc.PID()]; !known {
		m.w.gone[m.proc.PID()] = boot()
	}
}

// freeze stops the process where it is.
func (m *member) freeze() {
	m.proc.Freeze()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.frozen = true
	m.w.freezes = append(m.w.freezes, history.Freeze{PID: m.proc.PID(), From: boot(), Until: history.Forever})
}

// thaw lets a frozen process go on.
func (m *member) thaw() {
	m.w.mu.Lock()
	if m.frozen {
		m.frozen = false
		for i := range m.w.freezes {
			if f := &m.w.freezes[i]; f.PID == m.proc.PID() && f.Until == history.Forever {
				f.Until = boot()
			}
		}
	}
	m.w.mu.Unlock()
	m.proc.Thaw()
}

// endLimit is how long a process may take to end after SIGTERM, whatever is broken around it.
const endLimit = 30 * time.Second

// awaitEnd waits for the end of a process that was told to end.
func (m *member) awaitEnd() {
	m.w.T.Helper()
	select {
	case <-m.proc.Done():
	case <-time.After(endLimit):
		m.w.T.Errorf("%s did not end within %s of SIGTERM", m.name, endLimit)
		m.proc.Kill()
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.noteEnd()
}

// restore ends every fault of the member, and starts it if it does not run.
func (m *member) restore() {
	m.w.T.Helper()
	for _, link := range m.links {
		link.Restore()
	}
	if m.proc == nil {
		m.start()
		return
	}
	if !m.proc.Running() {
		if !m.ending {
			m.w.T.Errorf("%s ended by itself:\n%s", m.name, m.proc.Log())
		}
		m.kill() // notes its end
		m.start()
		return
	}
	if m.frozen {
		m.thaw()
	}
}
