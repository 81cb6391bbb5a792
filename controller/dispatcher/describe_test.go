package dispatcher_test

import (
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Each case places one task of class a ("ahead"), then explains why another one waits.
func TestWhatKeepsATaskWaitingIsSaidInWords(t *testing.T) {
	t.Parallel()
	type change = func(*task.Task)
	pool := func(name string) change { return func(t *task.Task) { t.Pool = name } }
	anti := func(t *task.Task) { t.AntiAffinityKey = "web" }
	one := store.Rate{PerSecond: 0.5, Burst: 1}
	none := store.Rate{Burst: 1}
	draining := node("n1", 10, "a")
	draining.State = registry.Draining
	for name, c := range map[string]struct {
		node       registry.Node
		before     store.Dispatcher // in force while "ahead" is placed
		set        store.Dispatcher
		ahead      []change
		waits      []change
		text, help string
	}{
		"paused":               {set: store.Dispatcher{Paused: true}, text: "The dispatcher is paused.", help: "Resume it: skalds dispatcher resume"},
		"class paused":         {set: store.Dispatcher{PausedClasses: []string{"a"}}, text: "The class a is paused.", help: "Resume it: skalds dispatcher resume --class a"},
		"namespace paused":     {set: store.Dispatcher{PausedNamespaces: []string{"it's"}}, waits: []change{namespace("it's")}, text: "The namespace it's is paused.", help: `Resume it: skalds dispatcher resume --namespace 'it'\''s'`},
		"no namespace paused":  {set: store.Dispatcher{PausedNamespaces: []string{""}}, text: "Tasks without a namespace are paused.", help: "Resume them: skalds dispatcher resume --namespace ''"},
		"rate":                 {before: store.Dispatcher{Rate: &one}, set: store.Dispatcher{Rate: &one}, text: "At most 0.5 tasks may start a second; the next one in 2s.", help: "Wait, or raise the rate: skalds limit set rate N"},
		"rate of 0":            {set: store.Dispatcher{ClassRates: map[string]store.Rate{"*": none}}, text: "No tasks of the class a may start: their rate is 0.", help: "Raise it: skalds limit set rate N --class a"},
		"class rate":           {before: store.Dispatcher{ClassRates: map[string]store.Rate{"a": one}}, set: store.Dispatcher{ClassRates: map[string]store.Rate{"a": one}}, text: "At most 0.5 tasks of the class a may start a second; the next one in 2s.", help: "Wait, or raise the rate: skalds limit set rate N --class a"},
		"namespace limit":      {set: store.Dispatcher{NamespaceLimits: map[string]int{"shop": 1}}, ahead: []change{namespace("shop")}, waits: []change{namespace("shop")}, text: "1 task of the namespace shop is on nodes, and at most 1 may be: ahead on n1.", help: "Wait for it to end, or raise the limit: skalds limit set namespace N --namespace shop"},
		"namespace limit of 0": {set: store.Dispatcher{NamespaceLimits: map[string]int{"": 0}}, text: "No task without a namespace may be on a node: the limit is 0.", help: "Raise the limit: skalds limit set namespace N --namespace ''"},
		"concurrency key":      {ahead: []change{key("k", 1)}, waits: []change{key("k", 1)}, text: `1 task with the concurrency key "k" is on nodes, and at most 1 may be: ahead on n1.`, help: "Wait for it to end; skalds task explain ID says how far it is."},
		"pool":                 {before: store.Dispatcher{Pools: map[string]int{"my gpu": 1}}, set: store.Dispatcher{Pools: map[string]int{"my gpu": 1}}, ahead: []change{pool("my gpu")}, waits: []change{pool("my gpu")}, text: "1 task of the pool my gpu is on nodes, and at most 1 may be: ahead on n1.", help: "Wait for it to end, or raise the limit: skalds limit set pool N --pool 'my gpu'"},
		"no such pool":         {waits: []change{pool("cpu")}, text: `There is no pool "cpu".`, help: "Make it: skalds limit set pool N --pool cpu"},
		"anti-affinity":        {ahead: []change{anti}, waits: []change{anti}, text: `Every node with free slots holds a task of the same anti-affinity key (1 node). The key is "web", and held by ahead on n1.`, help: "Wait for one of these tasks to end, or start another node."},
		"node rate":            {before: store.Dispatcher{NodeRates: map[string]store.Rate{"*": one}}, set: store.Dispatcher{NodeRates: map[string]store.Rate{"*": one}}, text: "Every node with free slots has used up its rate (1 node).", help: "Wait, or raise the rate of a node: skalds limit set rate N --node ID (skalds limit list shows what is set)."},
		"draining":             {node: draining, text: "No node takes work. Taking no work: n1 (draining).", help: "Start a node: skalds node, or a program of yours. Or end a drain: skalds nodes undrain n1"},
		"nothing":              {text: "Nothing keeps it waiting: it is placed when its turn comes. LEAST_TASKS would send it to n1 now (1 of 10 slots in use).", help: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := c.node
			if n.ID == "" {
				n = node("n1", 10, "a")
			}
			b := setup(t, n)
			b.d.Use(c.before)
			b.submit(t, "a", 1, append([]change{func(t *task.Task) { t.ID = "ahead" }}, c.ahead...)...)
			b.round(t)
			b.d.Use(c.set)
			b.submit(t, "a", 1, append([]change{func(t *task.Task) { t.ID = "waits" }}, c.waits...)...)
			tk := b.get(t, "waits")
			e := b.d.Explain(&tk)
			if e.Text != c.text || e.Help != c.help {
				t.Errorf("%s:\n%s\n%s\nwant\n%s\n%s", e.Reason, e.Text, e.Help, c.text, c.help)
			}
		})
	}
}

func TestShellWordsAreOneWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "''", "a-b_c.d/e:1": "a-b_c.d/e:1", "a b": "'a b'", "it's": `'it'\''s'`, "-x": "'-x'", "$HOME": "'$HOME'", "*": "'*'", "größe": "'größe'"} {
		if got := dispatcher.ShellWord(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if got := dispatcher.ShellWord("a\nb"); !strings.HasPrefix(got, "'") {
		t.Errorf("a line break is not quoted: %s", got)
	}
}
