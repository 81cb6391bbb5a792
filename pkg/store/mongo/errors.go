package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/skalds-go/skalds/pkg/store"
)

// duplicateKey is the server's code for a document that a unique index refuses.
const duplicateKey = 11000

// passing are the codes of answers that say nothing about the call, only that the server could not take it now. One
// that is missing here makes more than a wrong answer of the API: a report that is refused for good ends its task as
// Failed.
var passing = []int{
	6,     // HostUnreachable
	7,     // HostNotFound
	24,    // LockTimeout
	43,    // CursorNotFound
	46,    // LockBusy
	50,    // MaxTimeMSExpired
	64,    // WriteConcernTimeout
	89,    // NetworkTimeout
	91,    // ShutdownInProgress
	100,   // UnsatisfiableWriteConcern
	112,   // WriteConflict
	133,   // FailedToSatisfyReadPreference
	134,   // ReadConcernMajorityNotAvailableYet
	175,   // QueryPlanKilled
	189,   // PrimarySteppedDown
	202,   // NetworkInterfaceExceededTimeLimit
	246,   // SnapshotUnavailable
	262,   // ExceededTimeLimit
	391,   // ReauthenticationRequired
	462,   // IngressRequestRateLimitExceeded
	9001,  // SocketException
	10058, // LegacyNotPrimary
	10107, // NotWritablePrimary
	11600, // InterruptedAtShutdown
	11601, // Interrupted
	11602, // InterruptedDueToReplStateChange
	13388, // StaleConfig
	13435, // NotPrimaryNoSecondaryOk
	13436, // NotPrimaryOrSecondary
	14031, // OutOfDiskSpace
}

// fail wraps an error of the driver: what was done, where, and what to do about it.
func fail(op string, c *mongo.Collection, err error) error {
	if unavailable(err) {
		err = fmt.Errorf("%w: %w: see that the server of MONGO_HOST is up, has a primary and can be reached", store.ErrUnavailable, err)
	}
	return refuse(op, c, err)
}

// refuse wraps an error that another try does not mend.
func refuse(op string, c *mongo.Collection, err error) error {
	return fmt.Errorf("mongodb: %s, collection %s of database %s: %w", op, c.Name(), c.Database().Name(), err)
}

// unavailable reports whether the outcome of a call is unknown: everything but the server's own answer to this very
// call, or a caller who no longer wants it.
func unavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if bulk := (mongo.BulkWriteException{}); errors.As(err, &bulk) {
		return bulk.WriteConcernError != nil || slices.ContainsFunc(bulk.WriteErrors, func(e mongo.BulkWriteError) bool {
			return slices.Contains(passing, e.Code)
		})
	}
	if write := (mongo.WriteException{}); errors.As(err, &write) {
		return write.WriteConcernError != nil || slices.ContainsFunc(write.WriteErrors, func(e mongo.WriteError) bool {
			return slices.Contains(passing, e.Code)
		})
	}
	if marshal := (mongo.MarshalError{}); errors.As(err, &marshal) {
		return false
	}
	var answer mongo.ServerError
	if !errors.As(err, &answer) || mongo.IsNetworkError(err) || mongo.IsTimeout(err) {
		return true
	}
	return slices.ContainsFunc(passing, answer.HasErrorCode)
}
