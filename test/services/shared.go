package services

import (
	"os"
	"sync"
	"testing"
)

// pool holds the services that the tests of this binary share.
var pool = struct {
	sync.Mutex
	services map[kind]*pooled
}{services: map[kind]*pooled{}}

// pooled is a shared service: started for the first user, ended with the last. Its own lock keeps the start of one
// service from holding up another's.
type pooled struct {
	sync.Mutex
	users   int
	service *Service
}

// shared returns the address in the environment variable env, or that of the pool's service of this kind.
func shared(t testing.TB, env string, k kind) string {
	t.Helper()
	require(t)

	if addr := os.Getenv(env); addr != "" {
		return addr
	}

	pool.Lock()

	p := pool.services[k]
	if p == nil {
		p = &pooled{}
		pool.services[k] = p
	}
	pool.Unlock()

	p.Lock()
	defer p.Unlock()

	if p.service == nil {
		s, err := launch(k)
		if err != nil {
			t.Fatal(err)
		}

		p.service = s
	}

	p.users++

	t.Cleanup(func() { p.release(t) })

	return p.service.Addr()
}

// release ends the service when the test was its last user.
func (p *pooled) release(t testing.TB) {
	t.Helper()
	p.Lock()
	defer p.Unlock()

	if t.Failed() {
		t.Log(p.service.logTail())
	}

	p.users--
	if p.users > 0 {
		return
	}

	if err := p.service.close(); err != nil {
		t.Error(err)
	}

	p.service = nil
}
