package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	livePath  = "/livez"
	readyPath = "/readyz"
	batchPath = "/api/tasks/batch"

	// maxRequests is how many requests run at once, with those that wait for a task's end.
	maxRequests = 2 * maxWaiters
	// maxBodies is how many bytes the bodies that are in memory at once have together.
	maxBodies = 256 << 20
	// maxDrain is how much of a refused body is read, so that its sender gets the answer instead of a broken
	// connection.
	maxDrain = maxBatchBody
)

// middleware puts around the routes what is the same for all: in this order, so that nothing is read for a caller that
// may not.
func (s *server) middleware(mux *http.ServeMux) http.Handler {
	h := s.limit(s.route(mux))
	h = sameOrigin(h)
	h = s.authorize(h)
	h = s.observe(h)
	return h
}

// sameOrigin refuses what a browser sends for the page of another site: a controller on loopback needs no token.
func sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drain(w, r)
		writeProblemf(w, http.StatusForbidden, "a page of another site must not change anything here")
	}))
	return protection.Handler(next)
}

// route serves a path with or without a slash at its end, takes every body for JSON, and answers what no route is for.
func (s *server) route(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.HasPrefix(p, "/api/") && strings.HasSuffix(p, "/") && !strings.HasPrefix(p, docsPath) {
			r.URL.Path = strings.TrimRight(p, "/")
			r.URL.RawPath = strings.TrimRight(r.URL.RawPath, "/")
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			unrouted(w, r, mux)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	})
}

// unrouted answers 404 or 405, as the mux would, but as a problem.
func unrouted(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	probe := &discard{header: http.Header{}}
	mux.ServeHTTP(probe, r)
	if allow := probe.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		writeProblemf(w, http.StatusMethodNotAllowed, "%s is not allowed here; allowed: %s", shorten(r.Method), allow)
		return
	}
	writeProblemf(w, http.StatusNotFound, "there is nothing at %q; see %s", shorten(r.URL.Path), docsPath)
}

// discard is a response that only keeps its header.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// isPublic reports whether a request needs no token: health checks, and the documentation, which says nothing of what
// is stored.
func isPublic(r *http.Request) bool {
	switch p := r.URL.Path; p {
	case livePath, readyPath:
		return true
	case openAPIPath, docsPath:
		return r.Method == http.MethodGet
	default:
		return r.Method == http.MethodGet && strings.HasPrefix(p, docsPath+"/")
	}
}

// authorize lets pass what shows the token. The comparison takes the same time whatever is shown.
func (s *server) authorize(next http.Handler) http.Handler {
	if s.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !isPublic(r) && (!strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="skalds"`)
			drain(w, r)
			writeProblemf(w, http.StatusUnauthorized, "this call needs the API token: send the header Authorization: Bearer TOKEN (API_TOKEN of the controller)")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limit bounds the requests that run at once, and the bodies they hold. Health checks always pass.
func (s *server) limit(next http.Handler) http.Handler {
	requests := semaphore.NewWeighted(maxRequests)
	bodies := semaphore.NewWeighted(maxBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == livePath || r.URL.Path == readyPath {
			next.ServeHTTP(w, r)
			return
		}
		if !acquire(r.Context(), requests, 1) {
			refuse(w, r, "too many requests at once")
			return
		}
		defer requests.Release(1)
		allowed := s.maxBody()
		if strings.TrimRight(r.URL.Path, "/") == batchPath {
			allowed = maxBatchBody
		}
		if r.ContentLength > allowed {
			drain(w, r)
			writeProblemf(w, http.StatusRequestEntityTooLarge,
				"the body has %d bytes; at most %d are allowed here, and %d for the attachments of a task (TASK_MAX_BYTES)",
				r.ContentLength, allowed, s.TaskMaxBytes)
			return
		}
		need := r.ContentLength
		if need < 0 { // of unknown length
			need = allowed
		}
		if !acquire(r.Context(), bodies, need) {
			refuse(w, r, "too many large bodies at once")
			return
		}
		defer bodies.Release(need)
		next.ServeHTTP(w, r)
	})
}

// limitWait is how long a request waits for its turn before it is refused.
const limitWait = 5 * time.Second

// acquire takes n of what a semaphore bounds. It waits for that up to limitWait.
func acquire(ctx context.Context, of *semaphore.Weighted, n int64) bool {
	if of.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limitWait)
	defer cancel()
	return of.Acquire(ctx, n) == nil
}

func refuse(w http.ResponseWriter, r *http.Request, why string) {
	drain(w, r)
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	writeProblemf(w, http.StatusServiceUnavailable, "%s; try again", why)
}

// drain reads what is left of a body that will not be used.
func drain(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a writer without one is a test's
	_, _ = io.CopyN(io.Discard, r.Body, maxDrain)                                  // there may be less, or nobody
}

// observe measures each request, and answers for a handler that panicked.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		rec := &recorder{ResponseWriter: w}
		ctx := r.Context()
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				s.Log.ErrorContext(ctx, "api: handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if rec.code == 0 {
					writeProblemf(rec, http.StatusInternalServerError, "internal error; the controller's log says more")
				}
			}
			route := r.Pattern
			if _, path, ok := strings.Cut(route, " "); ok {
				route = path
			}
			if route == "" {
				route = "none"
			}
			s.metrics.answered(route, r.Method, rec.status(), time.Since(begin))
		}()
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers the status of a response.
type recorder struct {
	http.ResponseWriter

	code int
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	return n, err //nolint:wrapcheck // it stands for the writer it wraps
}

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
