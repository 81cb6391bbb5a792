package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/skalds-go/skalds/pkg/client"
)

// Waiting answers for a controller that cannot begin, since its store has not answered yet: that it lives, that it is
// not ready, and to every call that the store is missing. storeName is as in Deps.
func Waiting(storeName string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
	})
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusServiceUnavailable, client.Readiness{Status: "not ready", NotReady: []client.NotReady{
			{Name: storeName, Reason: "it has not answered since the controller was started"},
		}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		drain(w, r)
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		writeProblemf(w, http.StatusServiceUnavailable, "the task store (%s) has not answered since the controller was started; try again", storeName)
	})
	return mux
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // cannot be: only strings
		body = []byte("{}")
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
