package chaos_test

import (
	"context"
	"sync"
	"time"
)

// How many connections a process may have at once to the store (the driver's own default) and to Redis.
const storePool, redisPool = 100, 10

// c46 adds latency to the store and to Redis while callers of the API give up after half of it, counts the connections,
// and measures how soon tasks run as before. The callers ask what an index of the store answers: the server here looks
// at every task for a list, and is busy with those alone then.
func c46(w *world, prefix string) {
	const latency, patience = 200 * time.Millisecond, 100 * time.Millisecond
	usual := w.usual(prefix + "-read")
	before := map[*member]map[string]int64{}
	for _, m := range w.members {
		before[m] = map[string]int64{}
		for service, link := range m.links {
			before[m][service] = link.Accepted()
		}
		m.links[toRedis].Delay(latency / 2)
		if m.kind == controller {
			m.links[toStore].Delay(latency / 2)
		}
	}
	ctx, cancel := context.WithCancel(w.T.Context())
	defer cancel()
	var callers sync.WaitGroup
	for i := range 24 {
		api := w.controllers()[i%controllers].api
		callers.Go(func() {
			for ctx.Err() == nil {
				call, done := context.WithTimeout(ctx, patience)
				switch i % 3 { // all of them in vain, but for the work that they make
				case 0:
					_, _ = api.Get(call, prefix+"-read-00000")
				case 1:
					_, _ = api.Cancel(call, prefix+"-none")
				default:
					_, _ = api.Nodes(call, 10, "")
				}
				done()
			}
		})
	}
	w.submit(100, prefix, quick, 20)
	w.hold(time.Duration(times(4, 10)) * time.Second)
	cancel()
	callers.Wait()
	for _, m := range w.members {
		m.links[toRedis].Delay(0)
		if m.kind == controller {
			m.links[toStore].Delay(0)
		}
	}
	w.wentOn(prefix, time.Now(), usual)
	for m, links := range before {
		for service, pool := range map[string]int64{toStore: storePool, toRedis: redisPool} {
			link, has := m.links[service]
			if !has {
				continue
			}
			made := link.Accepted() - links[service]
			w.T.Logf("%s made %d connections to %s", m.name, made, service)
			if made > 2*pool {
				w.T.Errorf("%s made %d connections to %s, with a pool of %d", m.name, made, service, pool)
			}
		}
	}
	w.check(recoverLimit, prefix)
}
