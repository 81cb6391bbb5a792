// Package services starts real Kafka, Redis and MongoDB-wire servers for integration tests, by the scripts beside it.
//
// Invariants: nothing is started unless SKALDS_INTEGRATION=1, the test is skipped instead. What a test binary starts
// ends with it, however the binary ends. Ports come from the scripts, which give no two services the same one. Linux
// only.
package services

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// IntegrationEnv is the environment variable that must be "1" for a test that needs a service to run.
const IntegrationEnv = "SKALDS_INTEGRATION"

// The credentials that a broker takes at its SASL address, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
const (
	SASLUser     = "skalds"
	SASLPassword = "skalds-secret"
)

// KafkaVersions returns the broker versions that the integration tests run on.
func KafkaVersions() []string { return []string{"4.4", "3.9"} }

// Kafka returns the plaintext host:port of a broker of that version, which other tests use at the same time.
// It comes from SKALDS_TEST_KAFKA_44 (for "4.4") where that is set, and is else started for this test binary.
func Kafka(t testing.TB, version string) string {
	t.Helper()

	return shared(t, "SKALDS_TEST_KAFKA_"+strings.ReplaceAll(version, ".", ""), kind{script: "kafka.sh", variant: version})
}

// KafkaSASL returns the host:port at which the broker with that plaintext address asks for SASL credentials, without
// TLS.
func KafkaSASL(t testing.TB, addr string) string {
	t.Helper()

	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatalf("broker address %q: %v", addr, err)
	}

	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("broker address %q: port: %v", addr, err)
	}

	return net.JoinHostPort(host, strconv.Itoa(port+1))
}

// Redis returns the host:port of a redis-server, which other tests use at the same time.
// It comes from SKALDS_TEST_REDIS where that is set, and is else started for this test binary.
func Redis(t testing.TB) string {
	t.Helper()

	return shared(t, "SKALDS_TEST_REDIS", kind{script: "redis.sh"})
}

// Mongo returns the connection URI of a MongoDB-wire server, which other tests use at the same time.
// It comes from SKALDS_TEST_MONGO_URI where that is set, and is else started for this test binary.
func Mongo(t testing.TB) string {
	t.Helper()

	return MongoURI(shared(t, "SKALDS_TEST_MONGO_URI", kind{script: "mongo.sh"}))
}

// MongoURI returns the connection URI of the server at addr (host:port); a URI is returned as it is.
func MongoURI(addr string) string {
	if strings.Contains(addr, "://") {
		return addr
	}

	return "mongodb://" + addr
}

// StartKafka starts a broker of that version that is the test's own, so that it may be stopped and killed.
func StartKafka(t testing.TB, version string) *Service {
	t.Helper()

	return own(t, kind{script: "kafka.sh", variant: version})
}

// StartRedis starts a redis-server that is the test's own. Its append-only file keeps the data over Stop and Kill.
func StartRedis(t testing.TB) *Service {
	t.Helper()

	return own(t, kind{script: "redis.sh"})
}

// StartMongo starts a MongoDB-wire server that is the test's own. It holds its data in memory: Stop and Kill empty it.
func StartMongo(t testing.TB) *Service {
	t.Helper()

	return own(t, kind{script: "mongo.sh"})
}

// require skips the test unless integration tests were asked for.
func require(t testing.TB) {
	t.Helper()

	if os.Getenv(IntegrationEnv) != "1" {
		t.Skipf("needs a real service; set %s=1 to start one (make integration)", IntegrationEnv)
	}
}

// own starts a service for this test alone and ends it with the test.
func own(t testing.TB, k kind) *Service {
	t.Helper()
	require(t)

	s, err := launch(k)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.logTail())
		}

		if err := s.close(); err != nil {
			t.Error(err)
		}
	})

	return s
}
