package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

type pauseInput struct {
	Body struct {
		ClassName string  `json:"className,omitempty" minLength:"1" maxLength:"256" doc:"Only this class."`
		Namespace *string `json:"namespace,omitempty" maxLength:"256" doc:"Only this namespace; empty is that of tasks without one."`
	}
}

type settingsOutput struct {
	Body client.Settings
}

type rateInput struct {
	Name string `path:"name" maxLength:"512" doc:"Of the class or the node; * is each one without an own rate."`
	Body client.Rate
}

type wholeRateInput struct {
	Body client.Rate
}

type limitInput struct {
	Name string `path:"name" maxLength:"512" doc:"Of the namespace; - is that of tasks without one."`
	Body struct {
		Limit int `json:"limit" minimum:"0" maximum:"10000000" doc:"Tasks on nodes at once; 0 = none may run."`
	}
}

type nameInput struct {
	Name string `path:"name" maxLength:"512"`
}

type poolInput struct {
	Name string `path:"name" maxLength:"512" doc:"Name of the pool, at most 256 bytes."`
	Body struct {
		Name  string `json:"name,omitempty" maxLength:"512" doc:"As in the path; may be left out."`
		Limit int    `json:"limit" minimum:"0" maximum:"10000000" doc:"Tasks on nodes at once; 0 = none may run."`
		InUse int    `json:"inUse,omitempty" readOnly:"true"`
	}
}

type poolOutput struct {
	Body client.Pool
}

type poolsOutput struct {
	Body struct {
		Items []client.Pool `json:"items" nullable:"false" doc:"In the order of their names."`
	}
}

// noNamespace names the namespace of tasks without one in a path.
const noNamespace = "-"

func (s dispatcherAPI) registerSettings(api huma.API) {
	unwell := []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable}
	op := func(id, method, path, summary, description string, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"system"}, Summary: summary, Description: description,
			BodyReadTimeout: bodyTimeout, Errors: errs}
	}
	const holds = " It holds for all controllers, also after a restart."
	for _, p := range []struct {
		id     string
		paused bool
		what   string
	}{
		{"pause", true, "Dispatch nothing, or nothing of a class or a namespace. What runs goes on; what was sent and has not begun is called back. " +
			"When the call returns, nothing of it begins any more, as long as the nodes answer."},
		{"resume", false, "Dispatch again what a pause kept waiting, in the same order."},
	} {
		huma.Register(api, op(p.id+"-dispatcher", http.MethodPost, "/api/system/dispatcher/"+p.id,
			p.id+" the dispatcher, a class or a namespace", p.what+holds, unwell...),
			bounded(func(ctx context.Context, in *pauseInput) (*settingsOutput, error) {
				return s.change(ctx, pause(in.Body.ClassName, in.Body.Namespace, p.paused))
			}))
	}
	huma.Register(api, op("get-limits", http.MethodGet, "/api/system/limits", "Say which limits and pauses were set at run time", "",
		http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, _ *struct{}) (*settingsOutput, error) {
			d, err := s.Backend.Settings(ctx)
			if err != nil {
				return nil, s.storeFailed(ctx, "to read the limits", err)
			}
			return &settingsOutput{Body: Shown(&d)}, nil
		}))
	huma.Register(api, op("set-rate", http.MethodPut, "/api/system/limits/rate", "Limit how many tasks start a second", holds, unwell...),
		bounded(func(ctx context.Context, in *wholeRateInput) (*settingsOutput, error) {
			r := rateOf(in.Body)
			return s.change(ctx, func(d *store.Dispatcher) error { d.Rate = &r; return nil })
		}))
	huma.Register(api, op("remove-rate", http.MethodDelete, "/api/system/limits/rate", "Remove that limit", "", http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, _ *struct{}) (*settingsOutput, error) {
			return s.change(ctx, func(d *store.Dispatcher) error { d.Rate = nil; return nil })
		}))
	for _, k := range []struct {
		path, one string
		of        func(d *store.Dispatcher) *map[string]store.Rate
	}{
		{"classes", "class", func(d *store.Dispatcher) *map[string]store.Rate { return &d.ClassRates }},
		{"nodes", "node", func(d *store.Dispatcher) *map[string]store.Rate { return &d.NodeRates }},
	} {
		path := "/api/system/limits/" + k.path + "/{name}"
		huma.Register(api, op("set-"+k.one+"-rate", http.MethodPut, path, "Limit how many tasks of a "+k.one+" start a second", holds, unwell...),
			bounded(func(ctx context.Context, in *rateInput) (*settingsOutput, error) {
				return s.change(ctx, func(d *store.Dispatcher) error { return put(k.of(d), in.Name, rateOf(in.Body)) })
			}))
		huma.Register(api, op("remove-"+k.one+"-rate", http.MethodDelete, path, "Remove that limit", "", http.StatusNotFound, http.StatusServiceUnavailable),
			bounded(func(ctx context.Context, in *nameInput) (*settingsOutput, error) {
				return s.change(ctx, func(d *store.Dispatcher) error { return remove(*k.of(d), in.Name, "rate of the "+k.one) })
			}))
	}
	huma.Register(api, op("set-namespace-limit", http.MethodPut, "/api/system/limits/namespaces/{name}",
		"Limit how many tasks of a namespace are on nodes at once", holds, unwell...),
		bounded(func(ctx context.Context, in *limitInput) (*settingsOutput, error) {
			return s.change(ctx, func(d *store.Dispatcher) error { return put(&d.NamespaceLimits, namespaceOf(in.Name), in.Body.Limit) })
		}))
	huma.Register(api, op("remove-namespace-limit", http.MethodDelete, "/api/system/limits/namespaces/{name}",
		"Remove that limit", "", http.StatusNotFound, http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, in *nameInput) (*settingsOutput, error) {
			return s.change(ctx, func(d *store.Dispatcher) error {
				return remove(d.NamespaceLimits, namespaceOf(in.Name), "limit of the namespace")
			})
		}))
	s.registerPools(api, op, unwell)
}

func (s dispatcherAPI) registerPools(api huma.API, op func(id, method, path, summary, description string, errs ...int) huma.Operation, unwell []int) {
	huma.Register(api, op("list-pools", http.MethodGet, "/api/pools", "List the pools", "", http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, _ *struct{}) (*poolsOutput, error) {
			d, err := s.Backend.Settings(ctx)
			if err != nil {
				return nil, s.storeFailed(ctx, "to read the pools", err)
			}
			out := &poolsOutput{}
			out.Body.Items = s.poolsOf(ctx, d.Pools)
			return out, nil
		}))
	huma.Register(api, op("get-pool", http.MethodGet, "/api/pools/{name}", "Show a pool", "", http.StatusNotFound, http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, in *nameInput) (*poolOutput, error) {
			d, err := s.Backend.Settings(ctx)
			if err != nil {
				return nil, s.storeFailed(ctx, "to read a pool", err)
			}
			limit, ok := d.Pools[in.Name]
			if !ok {
				return nil, notFound("pool", in.Name)
			}
			return &poolOutput{Body: s.poolsOf(ctx, map[string]int{in.Name: limit})[0]}, nil
		}))
	huma.Register(api, op("set-pool", http.MethodPut, "/api/pools/{name}", "Make a pool, or change its limit",
		"What is on nodes when a limit goes down goes on; nothing new begins until there is room again.", unwell...),
		bounded(func(ctx context.Context, in *poolInput) (*poolOutput, error) {
			if _, err := s.change(ctx, func(d *store.Dispatcher) error { return put(&d.Pools, in.Name, in.Body.Limit) }); err != nil {
				return nil, err
			}
			return &poolOutput{Body: s.poolsOf(ctx, map[string]int{in.Name: in.Body.Limit})[0]}, nil
		}))
	huma.Register(api, op("remove-pool", http.MethodDelete, "/api/pools/{name}", "Remove a pool", "Tasks of it wait until it is made again.",
		http.StatusNotFound, http.StatusServiceUnavailable),
		bounded(func(ctx context.Context, in *nameInput) (*settingsOutput, error) {
			return s.change(ctx, func(d *store.Dispatcher) error { return remove(d.Pools, in.Name, "pool") })
		}))
}

// poolsOf shows pools by their names, given their limits. Where no leader answers, they are shown without their use.
func (s dispatcherAPI) poolsOf(ctx context.Context, limits map[string]int) []client.Pool {
	names := slices.Sorted(maps.Keys(limits))
	inUse, err := s.Backend.InUse(ctx, names)
	if err != nil {
		s.Log.WarnContext(ctx, "api: pools are shown without their use, which no leader tells", "error", err)
	}
	pools := make([]client.Pool, len(names))
	for i, name := range names {
		pools[i] = client.Pool{Name: name, Limit: limits[name]}
		if n, known := inUse[name]; known {
			pools[i].InUse = &n
		}
	}
	return pools
}

// change changes the settings and shows what they are then.
func (s dispatcherAPI) change(ctx context.Context, set func(*store.Dispatcher) error) (*settingsOutput, error) {
	d, err := s.Backend.Change(ctx, func(d *store.Dispatcher) error {
		if err := set(d); err != nil {
			return err
		}
		if err := d.Check(); err != nil {
			return invalid("body", nil, "%v", err)
		}
		return nil
	})
	var said huma.StatusError
	switch {
	case errors.As(err, &said):
		return nil, said
	case err != nil:
		return nil, s.storeFailed(ctx, "to change the settings", err)
	}
	return &settingsOutput{Body: Shown(&d)}, nil
}

// pause sets or ends a pause: of a class, of a namespace, of both each for itself, or, without either, of the
// dispatcher.
func pause(class string, namespace *string, paused bool) func(*store.Dispatcher) error {
	return func(d *store.Dispatcher) error {
		if class == "" && namespace == nil {
			d.Paused = paused
		}
		if class != "" {
			d.PausedClasses = with(d.PausedClasses, class, paused)
		}
		if namespace != nil {
			d.PausedNamespaces = with(d.PausedNamespaces, *namespace, paused)
		}
		return nil
	}
}

// with is a sorted list with a name in it, or without.
func with(list []string, name string, in bool) []string {
	at, found := slices.BinarySearch(list, name)
	switch {
	case in && !found:
		return slices.Insert(slices.Clone(list), at, name)
	case !in && found:
		return slices.Delete(slices.Clone(list), at, at+1)
	}
	return list
}

// put sets one entry of a limit.
func put[T any](of *map[string]T, name string, value T) error { //nolint:gocritic // there may be no map yet
	if len(name) > task.MaxKeyBytes || !utf8.ValidString(name) || slices.ContainsFunc([]rune(name), unicode.IsControl) {
		return invalid("path.name", shorten(name), "must have at most %d bytes and no control characters", task.MaxKeyBytes)
	}
	if *of == nil {
		*of = make(map[string]T)
	}
	(*of)[name] = value
	return nil
}

// remove removes one entry of a limit.
func remove[T any](of map[string]T, name, what string) error {
	if _, ok := of[name]; !ok {
		return problem(http.StatusNotFound, "there is no "+what+" "+strconv.Quote(shorten(name)))
	}
	delete(of, name)
	return nil
}

func namespaceOf(name string) string {
	if name == noNamespace {
		return ""
	}
	return name
}

// rateOf is a rate with its default burst: what comes in a second, at least one.
func rateOf(r client.Rate) store.Rate {
	return store.Rate{PerSecond: r.PerSecond, Burst: cmp.Or(r.Burst, max(1, int(math.Ceil(r.PerSecond))))}
}

// Shown is settings as the API shows them.
func Shown(d *store.Dispatcher) client.Settings {
	rates := func(of map[string]store.Rate) map[string]client.Rate {
		m := make(map[string]client.Rate, len(of))
		for name, r := range of {
			m[name] = client.Rate(r)
		}
		return m
	}
	limits := func(of map[string]int) map[string]int {
		m := make(map[string]int, len(of))
		maps.Copy(m, of)
		return m
	}
	s := client.Settings{Version: d.Version, Strategy: d.Strategy, Paused: d.Paused, PausedClasses: append([]string{}, d.PausedClasses...),
		PausedNamespaces: append([]string{}, d.PausedNamespaces...), ClassRates: rates(d.ClassRates), NodeRates: rates(d.NodeRates),
		NamespaceLimits: limits(d.NamespaceLimits), Pools: limits(d.Pools)}
	if d.Rate != nil {
		s.Rate = new(client.Rate(*d.Rate))
	}
	return s
}
