package events_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

func seed(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/*.json", "testdata/old/*.json", "testdata/python/*.value"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			value, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(value)
			f.Add(value[:len(value)/2])
		}
	}
	f.Add([]byte(`{"version":1,"recipient":"n","incarnation":"i","tasks":[{"id":"` + "\xff" + `","className":"c","claimId":"c","attempt":1,"attachments":"` + "\xff" + `"}]}`))
}

// refused reports whether a caller can act on a decoder's error.
func refused(err error) bool {
	return errors.Is(err, events.ErrMalformed) || errors.Is(err, events.ErrVersion)
}

// checkValues holds what is promised of every encoded value.
func checkValues(t *testing.T, list []events.Encoded, limit int) {
	t.Helper()
	for _, e := range list {
		if len(e.Key) == 0 || len(e.Value) > limit || !utf8.Valid(e.Value) {
			t.Fatalf("key %q, %d bytes of %d, valid UTF-8 %v", e.Key, len(e.Value), limit, utf8.Valid(e.Value))
		}
	}
}

func FuzzDecodeAssign(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		a, err := events.DecodeAssign(value)
		if err != nil {
			if !refused(err) {
				t.Fatalf("unclear error %v", err)
			}
			return
		}
		list, err := events.EncodeAssign(a, events.DefaultMaxBytes)
		if err != nil {
			if errors.Is(err, events.ErrTooLarge) {
				return
			}
			t.Fatal(err)
		}
		checkValues(t, list, events.DefaultMaxBytes)
		var tasks []events.AssignedTask
		for _, e := range list {
			part, err := events.DecodeAssign(e.Value)
			if err != nil {
				t.Fatalf("what was encoded does not decode: %v\n%s", err, e.Value)
			}
			tasks = append(tasks, part.Tasks...)
		}
		if len(tasks) != len(a.Tasks) {
			t.Fatalf("%d tasks became %d", len(a.Tasks), len(tasks))
		}
	})
}

func FuzzDecodeControl(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := events.DecodeControl(value)
		if err != nil {
			if !refused(err) {
				t.Fatalf("unclear error %v", err)
			}
			return
		}
		list, err := events.EncodeControl(c, events.DefaultMaxBytes)
		if err != nil {
			if errors.Is(err, events.ErrTooLarge) {
				return
			}
			t.Fatal(err)
		}
		checkValues(t, list, events.DefaultMaxBytes)
	})
}

func FuzzDecodeStatus(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := events.DecodeStatus(value)
		if err != nil {
			if !refused(err) {
				t.Fatalf("unclear error %v", err)
			}
			return
		}
		for i := range s.Reports {
			if s.Reports[i].Changes(1) == nil {
				t.Fatalf("a report of kind %q came through", s.Reports[i].Kind)
			}
		}
		task.Fold(append([]task.Report(nil), s.Reports...))
		list, err := events.EncodeStatus(s, events.DefaultMaxBytes)
		if err != nil {
			if errors.Is(err, events.ErrTooLarge) {
				return
			}
			t.Fatal(err)
		}
		checkValues(t, list, events.DefaultMaxBytes)
	})
}

func FuzzEncodeQuarantine(f *testing.F) {
	f.Add("task.assign", "malformed", []byte("k"), []byte("\xff{"))
	f.Fuzz(func(t *testing.T, topic, reason string, key, value []byte) {
		e, err := events.EncodeQuarantine(events.Quarantine{Topic: topic, Reason: reason, Key: key, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		if q, err := decodeQuarantine(e.Value); err != nil || q.Size != len(value) || !bytes.HasPrefix(value, q.Value) {
			t.Fatalf("%d bytes became %+v, %v", len(value), q, err)
		}
	})
}
