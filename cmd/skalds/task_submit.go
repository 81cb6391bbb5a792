package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/pkg/client"
)

// maxAttachmentsFile bounds what is read for --attachments: more than any server takes.
const maxAttachmentsFile = 16 << 20

func newTaskSubmit() *cobra.Command {
	var flags apiFlags
	var in client.NewTask
	var attachments, labels string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "submit CLASS",
		Short: "Submit a task",
		Long: `Submit a task of a class. Without --wait it prints the task as it was stored; with --wait it waits for the task's end, prints
it with its result, and ends with exit code 1 unless the task is Finished.

The id of a task that exists is refused (exit code 1); the idempotency key of one that exists gives that task.`,
		Example: `  skalds task submit demo.echo --attachments '{"x":1}' --wait
  skalds task submit resize --attachments @photo.json --priority 8
  skalds task submit resize --labels 'zone=a,!spot' --concurrency-key album-7
  echo '{"ms":500}' | skalds task submit demo.sleep --attachments - -o name`,
		Args: arguments("CLASS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !wait && cmd.Flags().Changed("timeout") {
				return usage(cmd, "--timeout says how long to wait: give --wait too")
			}
			if in.ConcurrencyLimit != 0 && in.ConcurrencyKey == "" {
				return usage(cmd, "--concurrency-limit is the limit of a --concurrency-key: give both")
			}
			in.ClassName = args[0]
			if labels != "" {
				in.Labels = labels
			}
			if attachments != "" {
				raw, err := readAttachments(cmd, attachments)
				if err != nil {
					return err
				}
				in.Attachments = raw
			}
			return flags.with(func(c *client.Client) error {
				t, err := c.Submit(cmd.Context(), in)
				if err != nil {
					return err
				}
				if !wait {
					return printTask(cmd.OutOrStdout(), flags.format, &t)
				}
				return waitAndPrint(cmd, c, flags.format, t.ID, timeout)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&attachments, "attachments", "a", "", "the handler's parameters: `JSON`, @file, or - for standard input")
	f.IntVar(&in.Priority, "priority", 0, "0 to 10; 10 runs first")
	f.StringVar(&in.ID, "id", "", "id of the task (default: a new one)")
	f.StringVar(&in.IdempotencyKey, "idempotency-key", "", "a second submit with the same `key` stores nothing")
	f.StringVar(&in.Name, "name", "", "a name for people")
	f.StringVar(&in.Namespace, "namespace", "", "the namespace that it counts for")
	f.StringVar(&labels, "labels", "", "which nodes it may run on: a `selector` such as 'zone=cn-north,gpu in (a100,h100),!spot'")
	f.StringVar(&in.Strategy, "strategy", "", "how its node is picked, as 'skalds strategy set' takes it (default: the dispatcher's strategy)")
	f.StringVar(&in.StickyKey, "sticky-key", "", "with the strategy STICKY, tasks of the same `key` go to the same node")
	f.StringVar(&in.AntiAffinityKey, "anti-affinity-key", "", "not on a node that holds a task of the same `key`")
	f.IntVar(&in.Slots, "slots", 0, "slots of its node's capacity that it takes (default 1)")
	f.StringVar(&in.ConcurrencyKey, "concurrency-key", "", "no more tasks of one `key` are on nodes at once than its limit")
	f.IntVar(&in.ConcurrencyLimit, "concurrency-limit", 0, "that limit (default 1)")
	f.StringVar(&in.Pool, "pool", "", "the pool whose limit it counts for; 'skalds limit set pool' makes it")
	f.BoolVarP(&wait, "wait", "w", false, "wait for the end of the task")
	f.DurationVar(&timeout, "timeout", 0, "how long to wait, such as 30s; 0 waits for ever")
	flags.add(cmd)
	return cmd
}

// readAttachments reads the value of --attachments.
func readAttachments(cmd *cobra.Command, flag string) (json.RawMessage, error) {
	raw := []byte(flag)
	var err error
	switch name, isFile := strings.CutPrefix(flag, "@"); {
	case flag == "-":
		raw, err = readBounded(cmd.InOrStdin())
	case isFile:
		raw, err = readFile(name)
	}
	if err != nil {
		return nil, usage(cmd, "--attachments: %v", err)
	}
	var syntax *json.SyntaxError
	var value json.RawMessage
	if err := json.Unmarshal(raw, &value); errors.As(err, &syntax) {
		return nil, usage(cmd, "--attachments is not JSON: %v, after %d bytes; quote it for the shell, such as --attachments '{\"x\":1}'", err, syntax.Offset)
	} else if err != nil {
		return nil, usage(cmd, "--attachments is not JSON: %v", err)
	}
	return value, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readBounded(f)
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxAttachmentsFile+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(raw) > maxAttachmentsFile {
		return nil, fmt.Errorf("more than %d bytes, which no server takes", maxAttachmentsFile)
	}
	return raw, nil
}
