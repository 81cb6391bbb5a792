package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skalds-go/skalds/node/session"
)

// MaxClassBytes is the longest class name.
const MaxClassBytes = 256

// Handler runs one task. It takes the attachments and returns the result, both as JSON. A task without attachments has
// nil; an empty result is no result.
type Handler func(ctx context.Context, attachments json.RawMessage) (json.RawMessage, error)

// Middleware wraps the handler of every class.
type Middleware func(next Handler) Handler

// Handle has fn run the tasks of a class.
//
// The attachments are decoded from JSON into In. Without attachments In is the zero value; fields that In lacks are
// ignored. Attachments that do not decode fail the task for good. The returned Out is encoded as JSON and becomes the
// task's result, of at most RESULT_MAX_BYTES; null is no result. Use json.RawMessage for either to see the bytes.
//
// The context ends when the run should end, with the cause [ErrCancelled], [ErrTimeout], [ErrDeadline], [ErrLeaseLost]
// or [ErrDraining]. Then fn should return soon, within NODE_STOP_MARGIN. If it returns an error then, the run ends by
// that cause; without an error the task is finished all the same. A handler that ignores a cancel, a timeout or a
// deadline for CANCEL_GRACE is abandoned: its end is reported, its slot is lost until it returns, and what it returns
// is refused.
//
// An error fails the run. So does a panic, and its stack is the error's text. The task is tried again, as its
// maxAttempts and backoff say, unless the error is marked by [Permanent] or [RetryAfter].
//
// Handle panics if the class is empty, longer than [MaxClassBytes], not UTF-8 or holds control characters, if it has a
// handler already, or if [Node.Run] was called.
func Handle[In, Out any](n *Node, class string, fn func(ctx context.Context, in In) (Out, error)) {
	n.handle(class, func(ctx context.Context, attachments json.RawMessage) (json.RawMessage, error) {
		var in In
		if len(attachments) > 0 {
			if err := json.Unmarshal(attachments, &in); err != nil {
				return nil, Permanent(fmt.Errorf("attachments do not decode into %T: %w", in, err))
			}
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	})
}

// encode writes a result as compact JSON, without escaping <, > and &.
func encode(out any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("result of type %T does not encode: %w", out, err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func (n *Node) handle(class string, h Handler) {
	if err := checkClass(class); err != nil {
		panic(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ran {
		panic(fmt.Errorf("node: Handle(%q) after Run: register every handler before", class))
	}
	if _, twice := n.handlers[class]; twice {
		panic(fmt.Errorf("node: class %q has a handler already", class))
	}
	n.handlers[class] = h
}

func checkClass(class string) error {
	switch {
	case class == "":
		return errors.New("node: the class name is empty")
	case len(class) > MaxClassBytes:
		return fmt.Errorf("node: class name %.40q… has %d bytes, %d at most", class, len(class), MaxClassBytes)
	case !utf8.ValidString(class):
		return fmt.Errorf("node: class name %q is not UTF-8", class)
	case strings.ContainsFunc(class, unicode.IsControl):
		return fmt.Errorf("node: class name %q holds control characters", class)
	}
	return nil
}

// Use wraps every handler by the middleware, also those that are registered later; the first one is the outermost.
// Middleware sees the task by [TaskFrom]; panics pass through it. Use panics after [Node.Run] was called.
func (n *Node) Use(middleware ...Middleware) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ran {
		panic(errors.New("node: Use after Run: register the middleware before"))
	}
	n.middleware = append(n.middleware, middleware...)
}

// chain returns the handlers within their middleware. No handler can be added from then on.
func (n *Node) chain() (map[string]session.Handler, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ran {
		return nil, errors.New("node: Run was called already: make a new node")
	}
	if len(n.handlers) == 0 {
		return nil, errors.New("node: no class has a handler: call node.Handle before Run")
	}
	n.ran = true
	chained := make(map[string]session.Handler, len(n.handlers))
	for class, h := range n.handlers {
		for _, wrap := range slices.Backward(n.middleware) {
			h = wrap(h)
		}
		chained[class] = func(ctx context.Context, run *session.Run, attachments json.RawMessage) (json.RawMessage, error) {
			return h(withTask(ctx, run), attachments)
		}
	}
	return chained, nil
}
