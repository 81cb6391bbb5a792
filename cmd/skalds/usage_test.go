package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp keeps the texts that a person reads first.
func TestHelp(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		name := "help-" + strings.Join(append([]string{"skalds"}, path...), "-") + ".txt"
		t.Run(name, func(t *testing.T) {
			golden(t, name, want(t, 0, append(path, "--help")...).out)
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

func TestExamplesAreWhatTheCommandsTake(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "version" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		if cmd.Example != "" && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("the example of %s does not show it:\n%s", cmd.CommandPath(), cmd.Example)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args string
		says string
	}{
		"unknown command":      {"tsk", `there is no command "tsk"; did you mean task?`},
		"unknown subcommand":   {"task lst", "did you mean list?"},
		"nothing like it":      {"task frobnicate", `there is no command "frobnicate"`},
		"unknown flag":         {"task list --colour", "unknown flag: --colour"},
		"no class":             {"task submit", "CLASS is missing"},
		"no id":                {"task cancel", "ID is missing"},
		"ids and a selection":  {"task cancel a --class c --yes", "not both"},
		"no yes":               {"task pause --class c", "give --dry-run to count"},
		"yes to an id":         {"task retry a --yes", "are for flags that select tasks"},
		"both":                 {"task resume --class c --yes --dry-run", "--dry-run or --yes, not both"},
		"status of a bulk":     {"task cancel --status done --yes", `--status is "done"`},
		"names of a bulk":      {"task cancel --all --yes -o name", "is only counted"},
		"no attachments":       {"task update a", "--attachments is missing"},
		"no node":              {"nodes drain", "ID is missing"},
		"one too many":         {"task show a b", `"b" is one argument too many; it takes ID`},
		"none allowed":         {"version x", "it takes none"},
		"bad JSON":             {"task submit c -a {x:1}", "--attachments is not JSON"},
		"cut JSON":             {`task submit c -a {"x":1`, "after 6 bytes"},
		"missing file":         {"task submit c -a @testdata/nowhere.json", "no such file"},
		"priority of words":    {"task submit c --priority high", "--priority"},
		"timeout without wait": {"task submit c --timeout 3s", "give --wait too"},
		"negative timeout":     {"task wait x --timeout -1s", "want 0 or more"},
		"bad output":           {"task list -o yaml", "must be table, json or name"},
		"bad status":           {"task list --status done", `--status is "done", want one of Created, `},
		"negative limit":       {"task list --limit -1", "want 0 (all) or more"},
		"bad server":           {"nodes list --server ftp://x", `--server is "ftp://x"`},
		"port too high":        {"dev --http-port 65536", "--http-port is 65536, want a number from 0 to 65535"},
		"too many nodes":       {"dev --nodes 101", "--nodes is 101"},
		"no capacity":          {"dev --capacity 0", "--capacity is 0"},
		"strategy":             {"dev --strategy best", `--strategy is "best", want one of LEAST_TASKS`},
		"scenario":             {"bench --scenario chaos", `--scenario is "chaos"`},
		"no tasks":             {"bench --tasks 0", "--tasks is 0"},
		"too many tasks":       {"bench --tasks 1000001", "--tasks is 1000001"},
		"rate":                 {"bench --rate -1", "--rate is -1"},
		"payload":              {"bench --payload 9999999", "--payload is 9999999"},
		"batch":                {"bench --batch 1001", "--batch is 1001"},
		"bench names":          {"bench -o name", `--output is "name"`},
		"bench for ever":       {"bench --timeout 0s", "--timeout is 0s"},
		"no classes":           {"bench --classes=", "--classes"},
		"kind of limit":        {"limit set speed 1", `KIND is "speed": must be rate, namespace or pool`},
		"no number":            {"limit set rate", "N is missing"},
		"a word for N":         {"limit set rate fast", `N is "fast": must be a number of 0 or more`},
		"no real number":       {"limit set rate NaN", `N is "NaN"`},
		"part of a task":       {"limit set pool 1.5 --pool gpu", `N is "1.5"`},
		"which pool":           {"limit set pool 3", "--pool NAME"},
		"empty class":          {"limit set rate 3 --class=", "--class is empty"},
		"class and node":       {"limit remove rate --class a --node b", "give one of --class and --node"},
		"not of the kind":      {"limit set rate 1 --pool a", "--pool says nothing about a limit of the kind rate"},
		"burst of tasks":       {"limit set namespace 1 --burst 2", "--burst is for rates"},
		"pause of a word":      {"dispatcher pause resize", "it takes none"},
		"pause of no class":    {"dispatcher pause --class=", "--class is empty"},
		"limit without key":    {"task submit c --concurrency-limit 3", "give both"},
		"explain two":          {"task explain a b", "it takes ID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitUsage, strings.Fields(tt.args)...)
			if !strings.Contains(a.err, tt.says) || !strings.Contains(a.err, "--help'.") || a.out != "" {
				t.Errorf("it says %q and %q, want %q", a.out, a.err, tt.says)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if a := want(t, 0, "version"); !strings.HasPrefix(a.out, "skalds dev (go1.") {
		t.Errorf("it says %q", a.out)
	}
}
