package task_test

import (
	"math"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

func TestCheckSubmit(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	cases := map[string]struct {
		set   func(*task.Task)
		field string // empty = nothing is wrong
		words string
	}{
		"good":             {func(*task.Task) {}, "", ""},
		"without an id":    {func(t *task.Task) { t.ID = "" }, "", ""},
		"the longest":      {func(t *task.Task) { t.Name, t.Description = long(task.MaxTextBytes), long(task.MaxDescriptionBytes) }, "", ""},
		"no class":         {func(t *task.Task) { t.ClassName = "" }, "className", "required"},
		"long class":       {func(t *task.Task) { t.ClassName = long(257) }, "className", "257 bytes; at most 256"},
		"control":          {func(t *task.Task) { t.ClassName = "a\u0085" }, "className", "U+0085 at byte 1"},
		"slash":            {func(t *task.Task) { t.ID = "a/b" }, "id", "slash"},
		"long id":          {func(t *task.Task) { t.ID = long(257) }, "id", "257"},
		"long key":         {func(t *task.Task) { t.IdempotencyKey = long(257) }, "idempotencyKey", "257"},
		"control in a key": {func(t *task.Task) { t.Pool = "\n" }, "pool", "U+000A"},
		"long pool":        {func(t *task.Task) { t.Pool = long(257) }, "pool", "257"},
		"long name":        {func(t *task.Task) { t.Name = long(1025) }, "name", "1025"},
		"long description": {func(t *task.Task) { t.Description = long(16385) }, "description", "16385"},
		"NUL":              {func(t *task.Task) { t.Source = "\x00" }, "source", "NUL"},
		"priority":         {func(t *task.Task) { t.Priority = 11 }, "priority", "0 to 10"},
		"mode":             {func(t *task.Task) { t.Mode = "passive" }, "mode", "Passive or Active"},
		"dependencies":     {func(t *task.Task) { t.Dependencies = []string{"a"} }, "dependencies", "empty"},
		"deadline":         {func(t *task.Task) { t.DeadlineDateTime = -1 }, "deadlineDateTime", "0 (none) or more"},
		"notBefore":        {func(t *task.Task) { t.NotBefore = -1 }, "notBefore", "0 (at once) or more"},
		"timeout":          {func(t *task.Task) { t.TimeoutMs = -1 }, "timeoutMs", "milliseconds"},
		"attempts":         {func(t *task.Task) { t.MaxAttempts = new(-1) }, "maxAttempts", "0 (without end) to 1000000"},
		"crashes":          {func(t *task.Task) { t.MaxCrashes = new(1_000_001) }, "maxCrashes", "1000000"},
		"slots":            {func(t *task.Task) { t.Slots = -1 }, "slots", "0 (one)"},
		"limit":            {func(t *task.Task) { t.ConcurrencyLimit = task.MaxSlots + 1 }, "concurrencyLimit", "1000000"},
		"factor":           {func(t *task.Task) { t.Backoff = &task.Backoff{Factor: math.NaN()} }, "backoff.factor", "1 to 100"},
		"wait":             {func(t *task.Task) { t.Backoff = &task.Backoff{Factor: 1, MaxMs: task.MaxBackoffMs + 1} }, "backoff.maxMs", "2592000000"},
		"selector":         {func(t *task.Task) { t.Selector = "zone in" }, "selector", "at byte"},
		"label":            {func(t *task.Task) { t.Labels = map[string]string{"a b": ""} }, "labels", "a b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tk := task.Task{ID: "a", ClassName: "c", Mode: task.ModePassive, LifecycleStatus: task.Created}
			c.set(&tk)
			switch wrong := tk.CheckSubmit(); {
			case c.field == "" && len(wrong) > 0, c.field != "" && len(wrong) != 1:
				t.Errorf("wrong: %v", wrong)
			case c.field != "" && (wrong[0].Field != c.field || !strings.Contains(wrong[0].Error(), c.words)):
				t.Errorf("wrong: %v; want %s, %q", &wrong[0], c.field, c.words)
			}
		})
	}
}
