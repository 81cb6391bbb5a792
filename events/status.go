package events

import (
	"encoding/json"
	"fmt"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Status is the value of task.status: what a node says of its claims, or a notice that makes the leader look at once.
type Status struct {
	Version     int            `json:"version"`
	Node        string         `json:"node,omitempty"`
	Incarnation string         `json:"incarnation,omitempty"`
	At          int64          `json:"at"`                // epoch ms, by the writer's clock
	Counter     int64          `json:"counter,omitempty"` // of the newest heartbeat that was made before this; 0 = not said
	Notice      Notice         `json:"notice,omitempty"`
	Updated     []string       `json:"updated,omitempty"` // with NoticeSubmitted: tasks that have got new attachments, at most MaxUpdated
	Heartbeat   *registry.Node `json:"heartbeat,omitempty"`
	Reports     []task.Report  `json:"reports,omitempty"`
}

// HeaderHeartbeat marks the records of task.status that are heartbeats, so that who only looks for those passes over the others without
// decoding them.
const HeaderHeartbeat = "skalds-heartbeat"

// Notice is news that is no report.
type Notice string

// The notices. A reader ignores one it does not know.
const (
	// NoticeJoined says that a node has registered.
	NoticeJoined Notice = "joined"
	// NoticeLeft says that a node has left; it holds nothing any more, and what it held may go elsewhere at once.
	NoticeLeft Notice = "left"
	// NoticeSubmitted says that another controller has stored tasks or wishes.
	NoticeSubmitted Notice = "submitted"
)

// MaxUpdated bounds the tasks that one notice names, so that it never needs splitting.
const MaxUpdated = 256

// EncodeStatus encodes s, split by reports so that no value is longer than limit bytes. A notice and a heartbeat are in the first value.
func EncodeStatus(s Status, limit int) ([]Encoded, error) {
	reports := s.Reports
	raw, sizes := make([]json.RawMessage, len(reports)), make([]int, len(reports))
	for i := range reports {
		b, err := marshal(&reports[i])
		if err != nil {
			return nil, fmt.Errorf("%s: task %s: %w", TopicStatus, reports[i].ID, err)
		}
		raw[i], sizes[i] = b, len(b)
	}
	s.Version, s.Reports = Version, nil
	if s.Heartbeat != nil {
		beat := *s.Heartbeat
		beat.Tasks = nil
		s.Heartbeat = &beat
	}
	head, err := marshal(&s)
	if err != nil {
		return nil, err
	}
	const listOverhead = 16 // ,"reports":[]
	var out []Encoded
	err = split(sizes, limit-len(head)-listOverhead, func(from, to int) error {
		value, err := marshal(&wireStatus{Status: s, Reports: raw[from:to]})
		if err != nil {
			return err
		}
		if err := fits(TopicStatus, len(value), limit); err != nil {
			return err
		}
		key := s.Node
		if from < to {
			key = reports[from].ID
		}
		if key == "" {
			key = TopicStatus
		}
		out = append(out, Encoded{Key: []byte(key), Value: value, From: from, To: to})
		s.Notice, s.Updated, s.Heartbeat = "", nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TopicStatus, err)
	}
	return out, nil
}

// wireStatus is Status with the reports encoded already.
type wireStatus struct {
	Status
	Reports []json.RawMessage `json:"reports,omitempty"`
}

// DecodeStatus reads a value of task.status. Reports of a kind that this version does not know are left out.
func DecodeStatus(value []byte) (Status, error) {
	var w struct { // with the names that writers before 0.1 used
		Status
		Beat *struct {
			registry.Node
			Turn int64 `json:"turn"`
		} `json:"beat"`
	}
	if err := unmarshal(TopicStatus, value, &w, &w.Version); err != nil {
		return Status{}, err
	}
	s := w.Status
	if s.Heartbeat == nil && w.Beat != nil {
		s.Heartbeat = &w.Beat.Node
		s.Heartbeat.RoundRobinCount = w.Beat.Turn
	}
	known := s.Reports[:0]
	for i := range s.Reports {
		r := &s.Reports[i]
		if r.ID == "" || r.ClaimID == "" || r.Attempt < 1 {
			return Status{}, fmt.Errorf("%s: %w: report %d (id %q, claimId %q, attempt %d) lacks one of these",
				TopicStatus, ErrMalformed, i, r.ID, r.ClaimID, r.Attempt)
		}
		if r.Kind.Known() {
			known = append(known, *r)
		}
	}
	s.Reports = known
	if len(s.Reports) > 0 && (s.Node == "" || s.Incarnation == "") {
		return Status{}, fmt.Errorf("%s: %w: reports without node and incarnation", TopicStatus, ErrMalformed)
	}
	if s.Heartbeat != nil && (s.Node == "" || s.Incarnation == "" || s.Heartbeat.Counter < 1 || s.Heartbeat.Partition < 0) {
		return Status{}, fmt.Errorf("%s: %w: a heartbeat without node, incarnation or counter", TopicStatus, ErrMalformed)
	}
	if s.Heartbeat != nil {
		s.Heartbeat.ID, s.Heartbeat.Incarnation, s.Heartbeat.Tasks = s.Node, s.Incarnation, nil
	}
	return s, nil
}
