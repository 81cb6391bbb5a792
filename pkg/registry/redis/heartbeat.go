package redis

import (
	"context"
	"fmt"
	"sync"

	"github.com/skalds-go/skalds/pkg/registry"
)

// The answers of heartbeat.lua.
const (
	written   = 1
	taken     = 2
	stale     = 3
	needsList = 4
)

// Heartbeat implements [registry.Registry]. The hash is written before the index, so that every id in the index has its
// hash.
func (r *Registry) Heartbeat(ctx context.Context, n *registry.Node) error {
	if err := registry.Check(n); err != nil {
		return fmt.Errorf("heartbeat refused: %w", err)
	}
	digest := listDigest(n.Tasks)
	code, detail, err := r.send(ctx, n, digest, !r.sent.is(n, digest))
	if err == nil && code == needsList {
		code, detail, err = r.send(ctx, n, digest, true)
	}
	if err == nil && code == written {
		r.sent.put(n, digest)
		return nil
	}
	doing := "heartbeat of node " + n.ID
	switch {
	case err != nil:
		return r.failure(doing, err)
	case code == taken:
		return fmt.Errorf("%s at redis %s: %w (this is incarnation %s, the holder is %q)",
			doing, r.where, registry.ErrTaken, n.Incarnation, detail)
	case code == stale:
		return fmt.Errorf("%s at redis %s: %w (this is number %d, number %s is there)", doing, r.where, registry.ErrStale, n.Counter, detail)
	default:
		return fmt.Errorf("%s at redis %s: the script answered %d, which it never should", doing, r.where, code)
	}
}

func (r *Registry) send(ctx context.Context, n *registry.Node, digest string, withList bool) (code int64, detail string, err error) {
	life := registry.KeyTTL.Milliseconds()
	fields := appendNode(nil, n)
	args := make([]any, 0, 8+len(fields)+2*len(n.Tasks))
	args = append(args, n.Incarnation, n.Counter, life, digest, len(n.Tasks), "0", n.Replaces, len(fields))
	args = append(args, fields...)
	if withList {
		args[5] = "1"
		if len(n.Tasks) <= registry.MaxTasks { // otherwise the length is written without the list, which reads as incomplete
			list := registry.Newest(n.Tasks)
			args[4] = len(list)
			args = appendTasks(args, list)
		}
	}
	cmds, have, err := r.runAndWait(ctx, r.wait,
		call{heartbeatScript, []string{nodeKey(n.ID), tasksKey(n.ID), evictedKey(n.ID)}, args},
		call{indexScript, []string{indexKey}, []any{n.ID, life}})
	if err != nil {
		return 0, "", err
	}
	answer, err := cmds[0].Slice()
	if err != nil {
		return 0, "", err //nolint:wrapcheck // Heartbeat wraps it
	}
	if len(answer) == 2 {
		number, isNumber := answer[0].(int64)
		text, isText := answer[1].(string)
		switch {
		case isNumber && isText && number == written && have < int64(r.wait):
			return 0, "", r.behind(have)
		case isNumber && isText:
			return number, text, nil
		}
	}
	return 0, "", fmt.Errorf("the script answered %v, not a code and a text", answer)
}

// Leave implements [registry.Registry]. The index forgets the node by itself.
func (r *Registry) Leave(ctx context.Context, id, incarnation string) error {
	if err := registry.Check(&registry.Node{ID: id, Incarnation: incarnation}); err != nil {
		return fmt.Errorf("leave refused: %w", err)
	}
	r.sent.forget(id)
	_, err := r.run(ctx, call{leaveScript, []string{nodeKey(id), tasksKey(id)}, []any{incarnation}})
	return r.failure("leave of node "+id, err)
}

// Evict implements [registry.Registry].
func (r *Registry) Evict(ctx context.Context, id, incarnation string) error {
	if err := registry.Check(&registry.Node{ID: id, Incarnation: incarnation}); err != nil {
		return fmt.Errorf("evict refused: %w", err)
	}
	keys := []string{nodeKey(id), tasksKey(id), evictedKey(id)}
	_, err := r.run(ctx, call{evictScript, keys, []any{incarnation, registry.KeyTTL.Milliseconds()}})
	return r.failure("evict of node "+id, err)
}

// maxSent bounds sentLists. One process has few nodes, except in tests at scale.
const maxSent = 10_000

// sentLists remembers which task list of each node the server confirmed last, so that an unchanged list is not sent
// again. It may be wrong after a failed call or if the server lost something: the script compares it with what it has.
type sentLists struct {
	mu   sync.Mutex
	list map[string]sentList // by node id
}

type sentList struct{ incarnation, digest string }

func (s *sentLists) is(n *registry.Node, digest string) bool {
	if len(n.Tasks) > registry.MaxTasks {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[n.ID] == sentList{n.Incarnation, digest}
}

func (s *sentLists) put(n *registry.Node, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.list[n.ID]; !known && len(s.list) >= maxSent {
		s.list = nil
	}
	if s.list == nil {
		s.list = make(map[string]sentList)
	}
	s.list[n.ID] = sentList{n.Incarnation, digest}
}

func (s *sentLists) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, id)
}
