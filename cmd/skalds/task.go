package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func newTask() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "task",
		Aliases: []string{"tasks"},
		Short:   "Submit tasks, look at them, steer and repeat them",
	}, newTaskSubmit(), newTaskList(), newTaskShow(), newTaskExplain(), newTaskWait(), newTaskCancel(), newTaskPause(), newTaskResume(),
		newTaskRetry(), newTaskUpdate())
	return cmd
}

// printTask prints one task in full.
func printTask(w io.Writer, f format, t *task.Task) error {
	switch f {
	case asJSON:
		return printJSON(w, t)
	case asName:
		return printf(w, "%s\n", t.ID)
	case asTable:
	}
	now := time.Now()
	p := newPairs(w)
	p.add("ID", t.ID)
	p.add("Class", t.ClassName)
	p.addIf("Name", t.Name)
	p.addIf("Description", t.Description)
	p.addIf("Source", t.Source)
	p.add("Status", statusText(t))
	p.addIf("Executor", t.Executor)
	p.add("Priority", strconv.Itoa(t.Priority))
	p.add("Attempt", strconv.FormatInt(t.Attempt, 10))
	p.addIf("Idempotency key", t.IdempotencyKey)
	p.addIf("Created", moment(t, t.CreateDateTime, now))
	p.addIf("Started", moment(t, t.StartDateTime, now))
	p.addIf("Finished", moment(t, t.FinishDateTime, now))
	if d, known := client.Waited(t); known {
		p.add("Waited", human(d))
	}
	if d, known := client.Ran(t, now); known {
		p.add("Duration", human(d))
	}
	if t.Progress != nil {
		p.add("Progress", percent(t.Progress.Percent)+" "+t.Progress.Message)
	}
	p.addIf("Attachments", jsonText(t.Attachments))
	p.addIf("Result", jsonText(t.Result))
	p.addIf("Error", t.Error)
	return p.flush()
}

func statusText(t *task.Task) string {
	if t.Desired != "" && !t.LifecycleStatus.Terminal() {
		return fmt.Sprintf("%s (to be %s)", t.LifecycleStatus, t.Desired)
	}
	return string(t.LifecycleStatus)
}

// maxShownJSON bounds how much of an attachment or a result a table shows; -o json shows all.
const maxShownJSON = 2000

func jsonText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	if text := []rune(b.String()); len(text) > maxShownJSON {
		return fmt.Sprintf("%s... (%d bytes; -o json shows all)", string(text[:maxShownJSON]), b.Len())
	}
	return b.String()
}

// taskTable prints tasks as lines. The head comes with the first of them.
type taskTable struct {
	w      io.Writer
	format format
	any    bool
}

func (t *taskTable) add(list []task.Task) error {
	if t.format == asTable {
		return t.lines(list)
	}
	for i := range list {
		err := t.one(&list[i])
		if err != nil {
			return err
		}
		t.any = true
	}
	return nil
}

func (t *taskTable) lines(list []task.Task) error {
	now := time.Now()
	w := columns(t.w)
	if !t.any {
		if err := row(w, "ID", "CLASS", "STATUS", "PRIORITY", "EXECUTOR", "ATTEMPT", "AGE", "DURATION"); err != nil {
			return err
		}
	}
	t.any = true
	for i := range list {
		s := &list[i]
		err := row(w, s.ID, s.ClassName, statusText(s), s.Priority, s.Executor, s.Attempt, age(s.CreateDateTime, now), length(client.Ran(s, now)))
		if err != nil {
			return err
		}
	}
	return flush(w)
}

// one prints one task as a name or as an element of a JSON array.
func (t *taskTable) one(s *task.Task) error {
	if t.format == asName {
		return printf(t.w, "%s\n", s.ID)
	}
	text, err := json.MarshalIndent(s, "  ", "  ")
	if err != nil {
		return fmt.Errorf("print task %q: %w", s.ID, err)
	}
	before := ",\n  "
	if !t.any {
		before = "[\n  "
	}
	return printf(t.w, "%s%s", before, text)
}

// end prints what follows the last task.
func (t *taskTable) end() error {
	switch {
	case t.format == asJSON && t.any:
		return printf(t.w, "\n]\n")
	case t.format == asJSON:
		return printf(t.w, "[]\n")
	}
	return nil
}
