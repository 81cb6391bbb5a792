package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	server := "127.0.0.1:" + freePort(t)
	for _, args := range []string{
		"task submit c", "task submit c --wait", "task list", "task show x", "task wait x", "task cancel x y", "task retry x", "task pause x", "task resume x",
		"task update x -a 1", "task cancel --all --yes", "nodes drain x", "nodes undrain x", "nodes list", "nodes show x", "strategy get", "strategy set RANDOM", "health", "bench",
		"task explain x", "dispatcher status", "dispatcher pending", "dispatcher pause", "dispatcher resume --class c", "limit list", "limit set rate 1", "limit remove rate",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitUnreachable, append(strings.Fields(args), "--server", "http://"+server)...)
			if !strings.Contains(a.err, server) || !strings.Contains(a.err, "is it running?") {
				t.Errorf("it says %q", a.err)
			}
		})
	}
}

func TestServerSaysNo(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	want(t, 0, "task", "submit", "demo.echo", "--id", "once", "--wait", "--server", d.server)
	for name, tt := range map[string]struct {
		args string
		says []string
	}{
		"priority":           {"task submit c --priority 11", []string{"priority is 11: must be a whole number from 0 to 10"}},
		"two things":         {"task submit c --priority 11 --id a/b", []string{"skalds: priority is 11: ", `skalds: id is "a/b": `}},
		"id exists":          {"task submit demo.echo --id once", []string{`a task with the id "once" exists`}},
		"no task":            {"task show nowhere", []string{`there is no task with the id "nowhere"`}},
		"no task to explain": {"task explain nowhere", []string{`there is no task with the id "nowhere"`}},
		"labels":             {"task submit c --labels zone=(", []string{"does not parse at byte 5"}},
		"strategy":           {"task submit c --strategy best", []string{"must be one of", "BINPACK"}},
		"slots":              {"task submit c --slots 99999999", []string{"slots is 99999999: must be a whole number"}},
		"limit":              {"limit set namespace 99999999999", []string{"limit is 99999999999: expected number <="}},
		"rate":               {"limit set rate 1e9", []string{"perSecond is 1000000000: expected number <="}},
		"burst":              {"limit set rate 1 --burst -1", []string{"burst is -1"}},
		"no such pool":       {"limit remove pool --pool gpu", []string{`there is no pool "gpu"`}},
		"no such rate":       {"limit remove rate --class c", []string{`there is no rate of the class "c"`}},
		"no such limit":      {"limit remove namespace", []string{`there is no limit of the namespace ""`}},
		"no task wait":       {"task wait nowhere", []string{`there is no task with the id "nowhere"`}},
		"no tasks":           {"task cancel nowhere either", []string{`skalds: there is no task with the id "nowhere"`, `skalds: there is no task with the id "either"`}},
		"ended":              {"task cancel once", []string{"it has ended and cannot be cancelled"}},
		"no drain":           {"nodes drain nowhere", []string{`there is no node with the id "nowhere"`}},
		"no pause":           {"task pause once", []string{"it has ended and cannot be paused"}},
		"no update":          {"task update once -a 1", []string{"nobody would see new attachments"}},
		"no node":            {"nodes show nowhere", []string{`there is no node with the id "nowhere"`}},
		"no strategy":        {"strategy set best", []string{`strategy is "best": must be one of`}},
		"failed":             {"task submit demo.fail --wait", []string{" is Failed"}},
		"timeout":            {"task submit demo.sleep --wait --timeout 1ms", []string{"has not ended within 1ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := want(t, exitNo, append(strings.Fields(tt.args), "--server", d.server)...)
			for _, text := range tt.says {
				if !strings.Contains(a.err, text) {
					t.Errorf("it says %q, want %q", a.err, text)
				}
			}
		})
	}
}

func TestInterruptedClient(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	want(t, 0, "task", "submit", "later", "--id", "never", "--server", d.server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"task", "wait", "never", "--server", d.server}, strings.NewReader(""), &out, &errs); code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if errs.String() != "interrupted\n" || out.Len() > 0 {
		t.Errorf("it says %q and %q", out.String(), errs.String())
	}
}

func TestAnswerThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"version"}, strings.NewReader(""), failingWriter{}, &errs); code != exitNo {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
