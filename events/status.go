package events

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Status is the value of task.status: reports of a node about its claims, a notice for the leader, or a heartbeat.
type Status struct {
	Version     int      `json:"version"`
	Node        string   `json:"node,omitempty"`
	Incarnation string   `json:"incarnation,omitempty"`
	At          int64    `json:"at"`                // epoch ms, by the writer's clock
	Counter     int64    `json:"counter,omitempty"` // of the newest heartbeat before this; 0 = unknown
	Notice      Notice   `json:"notice,omitempty"`
	Updated     []string `json:"updated,omitempty"` // with NoticeSubmitted: tasks with new attachments, at most MaxUpdated
	// Heartbeat travels over task.status while the registry does not answer the node. The leader answers on the node's
	// partition of task.assign, see [ConfirmedHeartbeat].
	Heartbeat *registry.Node `json:"heartbeat,omitempty"`
	Reports   []task.Report  `json:"reports,omitempty"`
}

// HeaderHeartbeat marks the records of task.status that are heartbeats. A reader that looks only for them skips the
// others without decoding them.
const HeaderHeartbeat = "skalds-heartbeat"

// Notice is news for the leader that is not a report.
type Notice string

// The notices. A reader ignores unknown ones.
const (
	// NoticeJoined means that a node has registered.
	NoticeJoined Notice = "joined"
	// NoticeLeft means that a node has left. It holds nothing any more, and what it held may go elsewhere at once.
	NoticeLeft Notice = "left"
	// NoticeSubmitted means that another controller has stored tasks or requests.
	NoticeSubmitted Notice = "submitted"
)

// MaxUpdated bounds the tasks that one notice names, so that it never needs splitting.
const MaxUpdated = 256

// EncodeStatus encodes s, split by reports so that no value is longer than limit bytes. Notice and heartbeat are in the
// first value.
func EncodeStatus(s Status, limit int) ([]Encoded, error) {
	reports := s.Reports
	raw, sizes, err := encodeEach(TopicStatus, reports, func(r *task.Report) string { return r.ID })
	if err != nil {
		return nil, err
	}
	s.Version, s.Reports = Version, nil
	if s.Heartbeat != nil {
		heartbeat := *s.Heartbeat
		heartbeat.Tasks = nil
		s.Heartbeat = &heartbeat
	}
	head, err := marshal(&s)
	if err != nil {
		return nil, err
	}
	const listOverhead = 16 // ,"reports":[]
	return encodeParts(TopicStatus, sizes, len(head)+listOverhead, limit, func(from, to int) (string, any) {
		part := wireStatus{Status: s, Reports: raw[from:to]}
		s.Notice, s.Updated, s.Heartbeat = "", nil, nil
		key := s.Node
		if from < to {
			key = reports[from].ID
		}
		return cmp.Or(key, TopicStatus), &part
	})
}

// wireStatus is Status with encoded reports.
type wireStatus struct {
	Status
	Reports []json.RawMessage `json:"reports,omitempty"`
}

// DecodeStatus decodes a value of task.status. Reports of an unknown kind are left out.
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
