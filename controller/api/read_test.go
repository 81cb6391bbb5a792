package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestGet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, task.Task{ID: "a/b c", Attachments: json.RawMessage(`{"x":1}`)})
	if got := want[task.Task](t, f.do(t, http.MethodGet, "/api/tasks/a%2Fb%20c", ""), http.StatusOK); got.ID != "a/b c" || string(got.Attachments) != `{"x":1}` {
		t.Errorf("%+v", got)
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/tasks/none", ""), http.StatusNotFound, "none")
	for _, wait := range []string{"61s", "-1s", "x", "61", "1h"} {
		wantProblem(t, f.do(t, http.MethodGet, "/api/tasks/none?wait="+wait, ""), 422, "query.wait", wait, "1m0s")
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/tasks/none?wiat=1s", ""), 422, "query.wiat")
}

// seenTasks ends the task after a number of looks.
type seenTasks struct {
	api.Tasks

	looks, endsAfter atomic.Int64
}

func (s *seenTasks) Get(_ context.Context, ids []string) ([]task.Task, error) {
	t := task.Task{ID: ids[0], LifecycleStatus: task.Running}
	if s.looks.Add(1) > s.endsAfter.Load() {
		t.LifecycleStatus = task.Finished
	}
	return []task.Task{t}, nil
}

func TestGetWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wait      string
		endsAfter int64
		status    task.Status
		took      time.Duration
		maxLooks  int64
	}{
		"ended already":      {"30s", 0, task.Finished, 0, 1},
		"ends soon":          {"30s", 2, task.Finished, 15 * time.Millisecond, 3},
		"ends later":         {"30s", 10, task.Finished, (5+10+20+40+80+160)*time.Millisecond + 4*250*time.Millisecond, 11},
		"does not end":       {"2s", 1000, task.Running, 2 * time.Second, 20},
		"plain seconds":      {"1", 1000, task.Running, time.Second, 20},
		"no time":            {"0s", 1000, task.Running, 0, 1},
		"longest, few looks": {"60s", 1000, task.Running, time.Minute, 260},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tasks := &seenTasks{}
				tasks.endsAfter.Store(tt.endsAfter)
				f := newFixture(t, func(d *api.Deps) { d.Tasks = tasks })
				begin := time.Now()
				got := want[task.Task](t, f.do(t, http.MethodGet, "/api/tasks/a?wait="+tt.wait, ""), http.StatusOK)
				if took := time.Since(begin); got.LifecycleStatus != tt.status || took != tt.took || tasks.looks.Load() > tt.maxLooks {
					t.Errorf("%s after %s and %d looks", got.LifecycleStatus, took, tasks.looks.Load())
				}
			})
		})
	}
}

func TestGetWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks := &seenTasks{}
		tasks.endsAfter.Store(1 << 40)
		f := newFixture(t, func(d *api.Deps) { d.Tasks = tasks })
		done := make(chan int, 1000)
		for range 1000 {
			go func() { done <- f.do(t, http.MethodGet, "/api/tasks/a?wait=5s", "").Code }()
		}
		synctest.Wait()
		wantProblem(t, f.do(t, http.MethodGet, "/api/tasks/a?wait=5s", ""), http.StatusServiceUnavailable, "1000")
		want[task.Task](t, f.do(t, http.MethodGet, "/api/tasks/a", ""), http.StatusOK)
		for range 1000 {
			if code := <-done; code != http.StatusOK {
				t.Fatalf("status %d", code)
			}
		}
		want[task.Task](t, f.do(t, http.MethodGet, "/api/tasks/a?wait=1s", ""), http.StatusOK)
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 45 {
		status := []task.Status{task.Created, task.Finished, task.Failed}[i%3]
		f.add(t, task.Task{ID: fmt.Sprintf("t%02d", i), ClassName: []string{"a", "b"}[i%2], LifecycleStatus: status, CreateDateTime: int64(i)})
	}
	tests := map[string]struct {
		query          string
		first          string
		items, total   int
		page, pageSize int
		more           bool
	}{
		"all":              {"", "t44", 20, 45, 1, 20, true},
		"last page":        {"?page=3", "t04", 5, 45, 3, 20, false},
		"beyond":           {"?page=9", "", 0, 45, 9, 20, false},
		"page size":        {"?page=2&pageSize=7", "t37", 7, 45, 2, 7, true},
		"one status":       {"?lifecycleStatus=finished&pageSize=1000", "t43", 15, 15, 1, 1000, false},
		"comma list":       {"?lifecycleStatus=Finished,failed&pageSize=50", "t44", 30, 30, 1, 50, false},
		"repeated":         {"?lifecycleStatus=Finished&lifecycleStatus=Failed", "t44", 20, 30, 1, 20, true},
		"class":            {"?className=b", "t43", 20, 22, 1, 20, true},
		"prefix":           {"?id=t1", "t19", 10, 10, 1, 20, false},
		"executor":         {"?executor=n", "", 0, 0, 1, 20, false},
		"slash at the end": {"/?pageSize=1", "t44", 1, 45, 1, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := f.do(t, http.MethodGet, "/api/tasks"+tt.query, "")
			got := want[client.TaskPage](t, res, http.StatusOK)
			if len(got.Items) != tt.items || got.Total == nil || *got.Total != int64(tt.total) || got.Page != tt.page || got.PageSize != tt.pageSize || (got.NextCursor != "") != tt.more {
				t.Errorf("%d items, %.300s", len(got.Items), res.Body)
			}
			if tt.items > 0 && got.Items[0].ID != tt.first {
				t.Errorf("begins with %s", got.Items[0].ID)
			}
		})
	}
}

func TestListByPageAndByCursorSeesEachOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 250 {
		f.add(t, task.Task{ID: fmt.Sprintf("t%03d", i), CreateDateTime: int64(i / 10)})
	}
	for _, size := range []int{7, 100, 120, 1000} {
		seen := map[string]bool{}
		for page := 1; len(seen) < 250; page++ {
			got := want[client.TaskPage](t, f.do(t, http.MethodGet, fmt.Sprintf("/api/tasks?pageSize=%d&page=%d", size, page), ""), http.StatusOK)
			if len(got.Items) != min(size, 250-len(seen)) {
				t.Fatalf("size %d, page %d: %d tasks", size, page, len(got.Items))
			}
			for _, x := range got.Items {
				seen[x.ID] = true
			}
		}
		clear(seen)
		cursor := ""
		for {
			got := want[client.TaskPage](t, f.do(t, http.MethodGet, fmt.Sprintf("/api/tasks?pageSize=%d&cursor=%s", size, cursor), ""), http.StatusOK)
			if (got.Total == nil) != (cursor != "") {
				t.Errorf("total %v with cursor %q", got.Total, cursor)
			}
			for _, x := range got.Items {
				if seen[x.ID] {
					t.Fatalf("size %d: %s twice", size, x.ID)
				}
				seen[x.ID] = true
			}
			if cursor = got.NextCursor; cursor == "" {
				break
			}
		}
		if len(seen) != 250 {
			t.Errorf("size %d: %d tasks", size, len(seen))
		}
	}
}

func TestListRefusesBadInput(t *testing.T) {
	t.Parallel()
	for query, words := range map[string][]string{
		"lifecycleStatus=Done":                  {"query.lifecycleStatus", "Done", "Created, Assigning, Running, Paused, Finished, Failed, Cancelled"},
		"lifecycleStatus=Failed,x":              {"query.lifecycleStatus", "x"},
		"page=-1":                               {"query.page", "-1"},
		"page=x":                                {"query.page", "x"},
		"pageSize=1001":                         {"query.pageSize", "1001", "1000"},
		"pageSize=-2":                           {"query.pageSize"},
		"cursor=rubbish":                        {"query.cursor", "nextCursor"},
		"cursor=abc&page=2":                     {"query.page", "cursor"},
		"className=" + strings.Repeat("c", 257): {"query.className", "256"},
		"classname=c":                           {"query.classname", "unknown"},
	} {
		wantProblem(t, newFixture(t).do(t, http.MethodGet, "/api/tasks?"+query, ""), 422, words...)
	}
}

// largeTasks lists tasks without end, each with much in it.
type largeTasks struct {
	api.Tasks

	attachments json.RawMessage
}

func (l *largeTasks) List(_ context.Context, f store.Filter) (store.ListPage, error) {
	page := store.ListPage{Total: 1 << 20, NextCursor: "more"}
	for range f.Limit {
		page.Tasks = append(page.Tasks, task.Task{ID: "x", Attachments: l.attachments})
	}
	return page, nil
}

func TestListBoundsThePageInBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) {
		d.Tasks = &largeTasks{attachments: json.RawMessage(`"` + strings.Repeat("a", 200<<10) + `"`)}
	})
	got := want[client.TaskPage](t, f.do(t, http.MethodGet, "/api/tasks?pageSize=1000", ""), http.StatusOK)
	if len(got.Items) != 200 || got.NextCursor == "" {
		t.Errorf("%d items, cursor %q", len(got.Items), got.NextCursor)
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/tasks?pageSize=1000&page=1", ""), 422, "query.pageSize", "32 MiB", "cursor")
}
