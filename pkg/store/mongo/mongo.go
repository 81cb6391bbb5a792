package mongo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/skalds-go/skalds/pkg/store"
)

// Store is the store in one MongoDB database. It is safe for concurrent use.
type Store struct {
	client *mongo.Client
	leases *mongo.Client // of lease alone: a renewal waits for no other call's connection

	tasks, leader, positions, settings *mongo.Collection

	lease *mongo.Collection // leader, as SwapLeader writes it

	sweep sweeper

	close    sync.Once
	closeErr error
}

var _ store.Store = (*Store)(nil)

// leasePool is how many connections there are for SwapLeader at most: for one that waits for its answer, and one after
// it.
const leasePool = 2

// Open connects to the server that the URI names, and makes the indexes that are missing. An index on a large
// collection may take minutes the first time: indexTimeout bounds it, and ctx. The error is store.ErrUnavailable if the
// server does not answer within store.OpTimeout.
func Open(ctx context.Context, uri, database string) (*Store, error) {
	if database == "" {
		return nil, errors.New("mongodb: the name of the database is empty: set DB_NAME")
	}
	majority := func() *options.ClientOptions {
		return options.Client().ApplyURI(uri).SetAppName("skalds").SetTimeout(store.OpTimeout).
			SetWriteConcern(writeconcern.Majority()).SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary())
	}
	client, err := mongo.Connect(majority())
	if err != nil {
		return nil, fmt.Errorf("mongodb: the URI of the server: %w: correct MONGO_HOST", err)
	}
	leases, err := mongo.Connect(majority().SetMinPoolSize(0).SetMaxPoolSize(leasePool))
	if err != nil { // cannot be: the URI is right
		return nil, errors.Join(fmt.Errorf("mongodb: connections for the leader's document: %w", err), client.Disconnect(ctx))
	}
	db := client.Database(database)
	s := &Store{
		client: client, leases: leases, tasks: db.Collection("tasks"),
		leader: db.Collection("leader"), positions: db.Collection("positions"), settings: db.Collection("settings"),
		lease: leases.Database(database).Collection("leader"),
	}
	if err = s.Ping(ctx); err == nil {
		err = s.createIndexes(ctx)
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Close(closing) // the reason is what counts
		return nil, err
	}
	return s, nil
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := s.client.Ping(ctx, readpref.Primary()); err != nil {
		return fail("ping", s.tasks, err)
	}
	return nil
}

// Close implements store.Store.
func (s *Store) Close(ctx context.Context) error {
	s.close.Do(func() {
		if err := errors.Join(s.client.Disconnect(ctx), s.leases.Disconnect(ctx)); err != nil {
			s.closeErr = fmt.Errorf("mongodb: close: %w", err)
		}
	})
	return s.closeErr
}

// patience is how long a call may go on whose caller has given up.
const patience = time.Second

// bounded ends a call in time, also where it takes several commands. The caller's context may end it sooner: its
// deadline at once, but a caller that gives up only after patience. The driver closes the connection of a command that
// is given up, while the server works on at it. Callers in a hurry would have more commands run at once than anybody
// asks for, and connections made without end, two at a time, which others wait for; the leader's renewals among them.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	end := time.Now().Add(store.OpTimeout)
	if at, ok := ctx.Deadline(); ok && at.Before(end) {
		end = at
	}
	own, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-own.Done(): // the call is over
		}
	})
	return own, func() {
		stop()
		cancel()
	}
}
