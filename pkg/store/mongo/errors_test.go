package mongo

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func TestUnavailable(t *testing.T) {
	t.Parallel()
	bulk := func(code int, concern *mongo.WriteConcernError) error {
		e := mongo.BulkWriteException{WriteConcernError: concern}
		if code != 0 {
			e.WriteErrors = []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: code}}}
		}
		return e
	}
	cases := []struct {
		name string
		err  error
		want bool
	}{
		{"out of time", context.DeadlineExceeded, true},
		{"the caller went away", fmt.Errorf("x: %w", context.Canceled), false},
		{"closed", mongo.ErrClientDisconnected, true},
		{"no server found", errors.New("server selection error"), true},
		{"not primary", mongo.CommandError{Code: 10107}, true},
		{"shutting down", mongo.CommandError{Code: 11600}, true},
		{"an operator ended the command", mongo.CommandError{Code: 11601}, true},
		{"its plan was given up since an index went", mongo.CommandError{Code: 175}, true},
		{"the disk is full", mongo.CommandError{Code: 14031}, true},
		{"network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"server's time limit", mongo.CommandError{Code: 50}, true},
		{"refused command", mongo.CommandError{Code: 59}, false},
		{"not allowed", mongo.CommandError{Code: 13}, false},
		{"no majority", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, true},
		{"duplicate", mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: duplicateKey}}}, false},
		{"bulk without majority", bulk(0, &mongo.WriteConcernError{Code: 64}), true},
		{"bulk on a primary that steps down", bulk(11602, nil), true},
		{"bulk on a full disk", bulk(14031, nil), true},
		{"bulk with a duplicate", bulk(duplicateKey, nil), false},
		{"not encodable", mongo.MarshalError{Err: errors.New("x")}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := unavailable(c.err); got != c.want {
				t.Errorf("unavailable(%v) = %t", c.err, got)
			}
		})
	}
}
