package services_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/test/services"
)

// patience bounds each wait for a service; a healthy one answers in milliseconds.
const patience = 30 * time.Second

func TestSkipsWithoutBeingAsked(t *testing.T) {
	t.Setenv(services.IntegrationEnv, "")

	for name, start := range map[string]func(*testing.T){
		"shared": func(t *testing.T) { t.Helper(); services.Redis(t) },
		"own":    func(t *testing.T) { t.Helper(); services.StartRedis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if !t.Skipped() {
					t.Error("the test was not skipped")
				}
			}()

			start(t)
		})
	}
}

func TestUsesTheGivenAddress(t *testing.T) {
	t.Setenv(services.IntegrationEnv, "1")
	t.Setenv("SKALDS_TEST_KAFKA_44", "broker:1")
	t.Setenv("SKALDS_TEST_KAFKA_39", "broker:2")
	t.Setenv("SKALDS_TEST_REDIS", "redis:3")
	t.Setenv("SKALDS_TEST_MONGO_URI", "mongodb://mongo:4/?appName=x")

	for want, got := range map[string]string{
		"broker:1":                     services.Kafka(t, "4.4"),
		"broker:2":                     services.Kafka(t, "3.9"),
		"redis:3":                      services.Redis(t),
		"mongodb://mongo:4/?appName=x": services.Mongo(t),
		"mongodb://mongo:5":            services.MongoURI("mongo:5"),
		"127.0.0.1:20001":              services.KafkaSASL(t, "127.0.0.1:20000"),
	} {
		if got != want {
			t.Errorf("address = %q, want %q", got, want)
		}
	}
}

func TestIntegrationKafka(t *testing.T) {
	t.Parallel()

	for _, version := range services.KafkaVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			addr := services.Kafka(t, version)
			dialers := map[string]*kafka.Dialer{
				addr: {},
				services.KafkaSASL(t, addr): {SASLMechanism: plain.Mechanism{
					Username: services.SASLUser, Password: services.SASLPassword,
				}},
			}

			for addr, dialer := range dialers {
				conn, err := dialer.DialContext(ctx, "tcp", addr)
				if err != nil {
					t.Fatalf("dial %s: %v", addr, err)
				}

				if _, err := conn.Brokers(); err != nil {
					t.Errorf("brokers of %s: %v", addr, err)
				}

				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestIntegrationMongo(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	client, err := mongo.Connect(options.Client().ApplyURI(services.Mongo(t)))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })

	coll := client.Database("services-test").Collection(fmt.Sprintf("c%d", os.Getpid()))
	index := mongo.IndexModel{
		Keys:    bson.D{{Key: "key", Value: 1}},
		Options: options.Index().SetUnique(true).SetPartialFilterExpression(bson.D{{Key: "key", Value: bson.D{{Key: "$exists", Value: true}}}}),
	}

	if _, err := coll.Indexes().CreateOne(ctx, index); err != nil {
		t.Fatal(err)
	}

	for _, doc := range []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}, {Key: "key", Value: "a"}}} {
		if _, err := coll.InsertOne(ctx, doc); err != nil {
			t.Errorf("insert %v: %v", doc, err)
		}
	}

	_, err = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 4}, {Key: "key", Value: "a"}})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("second document with the same key: error %v, want a duplicate key", err)
	}
}

func TestIntegrationServiceLife(t *testing.T) {
	t.Parallel()

	service := services.StartRedis(t)
	redis(t, service.Addr(), "SET", "key", "value")

	for _, end := range []func(testing.TB){service.Stop, service.Kill} {
		pid := service.PID(t)
		conn := dial(t, service.Addr())

		end(t)
		waitForEOF(t, conn)
		service.Start(t)

		if service.PID(t) == pid {
			t.Error("the process id is the same after a restart")
		}

		if got := redis(t, service.Addr(), "EXISTS", "key"); got != ":1" {
			t.Errorf("EXISTS after a restart = %q, want :1", got)
		}
	}
}

// TestIntegrationDiesWithTheTestBinary runs itself as a child that starts a service, and kills the child.
func TestIntegrationDiesWithTheTestBinary(t *testing.T) {
	t.Parallel()

	const child = "SKALDS_SERVICES_TEST_CHILD"

	service := services.StartRedis(t)
	if os.Getenv(child) != "" {
		fmt.Println("addr " + service.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed

		return
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+t.TempDir())

	_, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}

	addr := strings.TrimSpace(strings.TrimPrefix(line, "addr "))
	if addr == service.Addr() {
		t.Errorf("two services share the address %s", addr)
	}

	conn := dial(t, addr)

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = cmd.Wait() // reports the kill

	waitForEOF(t, conn)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()

	var dialer net.Dialer

	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })

	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}

	return conn
}

// redis sends one inline command and returns the first line of the answer.
func redis(t *testing.T, addr string, command ...string) string {
	t.Helper()

	conn := dial(t, addr)
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(command, " ")); err != nil {
		t.Fatal(err)
	}

	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	return strings.TrimSpace(line)
}

// waitForEOF returns when the other side has closed the connection, as the end of its process does.
func waitForEOF(t *testing.T, conn net.Conn) {
	t.Helper()

	_, err := io.Copy(io.Discard, conn)
	if netErr := net.Error(nil); errors.As(err, &netErr) && netErr.Timeout() {
		t.Error("the service still runs")
	}
}
