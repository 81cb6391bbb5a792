package config

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"time"
)

// Node is the configuration of a node process.
type Node struct {
	Log

	// ID is the node's id, unique among all nodes. LoadNode makes one of the
	// host name and a random ending where SKALD_ID is not set.
	ID string `envconfig:"SKALD_ID" syntax:"id" dev:"-"`
	// Mode says where the node's tasks come from.
	Mode NodeMode `envconfig:"SKALD_MODE" default:"node" dev:"-"`
	// Capacity is how many slots there are for tasks that run; a task takes one,
	// or as many as it says.
	Capacity int `envconfig:"NODE_CAPACITY" default:"16" range:"1..100000"`
	// Prefetch is how many slots more may be promised to tasks that wait here; 0
	// for none. Only classes whose runs take less than 10 ms may use all of it,
	// and those below 100 ms as much of it as the capacity.
	Prefetch int `envconfig:"NODE_PREFETCH" follows:"NODE_CAPACITY" times:"4" range:"0..100000"`
	// CapacityByClass is how many of these slots the tasks of a class take at the
	// most.
	CapacityByClass ClassCapacities `envconfig:"NODE_CAPACITY_BY_CLASS"`
	// Labels are what the label selectors of tasks see.
	Labels Labels `envconfig:"NODE_LABELS"`

	// StateDir is a directory on a disk of this machine where the node keeps the
	// lock that proves to its successor that it is dead; empty for none.
	StateDir string `envconfig:"SKALD_STATE_DIR" dev:"-"`

	Kafka `dev:"-"`
	Redis `dev:"-"`
	Liveness

	// ResultMaxBytes is the size of the largest result of a task, as JSON.
	ResultMaxBytes int `envconfig:"RESULT_MAX_BYTES" default:"262144" range:"1024..4194304"`

	// DrainSoft is how long a node that was told to stop lets its tasks run on;
	// 0 releases them at once.
	DrainSoft time.Duration `envconfig:"DRAIN_SOFT" default:"30s" range:"0s..24h" dev:"4s"`
	// CancelGrace is how long a handler may take to return after a cancel, a
	// timeout or a deadline, before it is abandoned.
	CancelGrace time.Duration `envconfig:"CANCEL_GRACE" default:"10s" range:"100ms..1h"`
	// DrainHard is how long handlers may then take to return after the end of
	// their context.
	DrainHard time.Duration `envconfig:"DRAIN_HARD" default:"10s" range:"100ms..1h" dev:"1s"`
}

// LoadNode reads the configuration of a node from the environment. The error is
// an [Error] with every problem.
func LoadNode() (Node, error) {
	var n Node
	r := read(&n)
	if n.ID == "" {
		n.ID = randomID()
	}
	if err := r.finish(n.problems()); err != nil {
		return Node{}, err
	}
	return n, nil
}

// Validate returns an [Error] with every problem, or nil. It reads the TLS files
// that the configuration names.
func (n Node) Validate() error { return errorOf(n.problems()) }

func (n Node) problems() []Problem {
	return slices.Concat(
		checkFields(&n),
		n.Kafka.rules(),
		n.Redis.rules(),
		n.Liveness.rules(),
		n.fits("RESULT_MAX_BYTES", n.ResultMaxBytes),
	)
}

// randomID returns the host name and a random ending, so that two nodes on one
// host do not take the same id.
func randomID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	return idFrom(host)
}

func idFrom(host string) string {
	var ending [4]byte
	_, _ = rand.Read(ending[:]) // it never fails
	clean := strings.Map(func(r rune) rune {
		if idPattern.MatchString(string(r)) {
			return r
		}
		return '-'
	}, host)
	return clean[:min(len(clean), 100)] + "-" + hex.EncodeToString(ending[:])
}
