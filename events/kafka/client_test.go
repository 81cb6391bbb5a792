package kafka_test

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/events/kafka"
)

func TestConfigProblemsComeTogether(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  kafka.Config
		want []string
	}{
		{name: "no brokers", want: []string{"brokers: none given"}},
		{name: "all at once", cfg: kafka.Config{
			Brokers: []string{"localhost", "host:0", ":9092", "ok:9092"}, Timeout: -1, MaxMessageBytes: -1,
			SASL: kafka.SASL{Mechanism: "kerberos", Password: "hunter2"},
		}, want: []string{`"localhost"`, `"host:0"`, `":9092"`, "timeout", "max message bytes", `unknown mechanism "kerberos"`}},
		{name: "no user", cfg: kafka.Config{Brokers: []string{"ok:9092"}, SASL: kafka.SASL{Mechanism: "PLAIN", Password: "hunter2"}},
			want: []string{"needs a user name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := kafka.NewClient(tt.cfg)
			if err == nil {
				t.Fatal("taken")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ok:9092") {
				t.Errorf("error says too much: %v", err)
			}
		})
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	server, trusting := certificates(t)
	cluster := newCluster(t, kfake.EnableSASL(), kfake.TLS(server), kfake.Superuser("PLAIN", "plain", "p1"),
		kfake.Superuser("SCRAM-SHA-256", "small", "p2"), kfake.Superuser("SCRAM-SHA-512", "large", "p3"))
	for _, tt := range []struct {
		name string
		sasl kafka.SASL
		tls  *tls.Config
		ok   bool
	}{
		{"plain", kafka.SASL{Mechanism: "plain", Username: "plain", Password: "p1"}, trusting, true},
		{"scram 256", kafka.SASL{Mechanism: "SCRAM-SHA-256", Username: "small", Password: "p2"}, trusting, true},
		{"scram 512", kafka.SASL{Mechanism: "scram-sha-512", Username: "large", Password: "p3"}, trusting, true},
		{"wrong password", kafka.SASL{Mechanism: "plain", Username: "plain", Password: "wrong"}, trusting, false},
		{"none where one is needed", kafka.SASL{}, trusting, false},
		{"unknown authority", kafka.SASL{Mechanism: "plain", Username: "plain", Password: "p1"}, &tls.Config{MinVersion: tls.VersionTLS12}, false},
		{"plain text to a TLS port", kafka.SASL{Mechanism: "plain", Username: "plain", Password: "p1"}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, kafka.Config{Brokers: cluster.ListenAddrs(), SASL: tt.sasl, TLS: tt.tls, Timeout: 2 * time.Second})
			err := client.Ping(t.Context())
			if (err == nil) != tt.ok {
				t.Errorf("ping: %v, want success: %v", err, tt.ok)
			}
			publishErr := client.Publish(t.Context(), topic, 0, values("x"))
			if (publishErr == nil) != tt.ok || (publishErr != nil && !errors.Is(publishErr, kafka.ErrNotSent)) {
				t.Errorf("publish: %v, want success: %v, otherwise not sent", publishErr, tt.ok)
			}
			if err != nil && tt.sasl.Password != "" && strings.Contains(err.Error(), tt.sasl.Password) {
				t.Errorf("the password is in %v", err)
			}
		})
	}
}

func TestOtherBrokersAreTriedWhenOneIsGone(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := newClient(t, kafka.Config{
		Brokers: []string{refusedAddr(t), silentServer(t), refusedAddr(t), cluster.ListenAddrs()[0]}, Timeout: 400 * time.Millisecond,
	})
	for range 5 { // the first may meet the silent one, the others remember who answered
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPingFails(t *testing.T) {
	t.Parallel()
	client := newClient(t, kafka.Config{Brokers: []string{refusedAddr(t)}})
	if err := client.Ping(t.Context()); err == nil {
		t.Error("no error where nobody listens")
	}
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	reader := client.Reader(topic, 0, kafka.Latest())
	waiting := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = reader.Next(context.Background())
		}
		waiting <- err
	}()
	publish(t, client, "x")
	client.Close()
	client.Close()
	wantErr(t, <-waiting, kafka.ErrClosed)

	ctx := t.Context()
	_, err := reader.Next(ctx)
	wantErr(t, err, kafka.ErrClosed)
	_, err = client.Offsets(ctx, topic, []int{0})
	wantErr(t, err, kafka.ErrClosed)
	_, err = client.Partitions(ctx, topic)
	wantErr(t, err, kafka.ErrClosed)
	wantErr(t, client.Ping(ctx), kafka.ErrClosed)
	wantErr(t, client.Publish(ctx, topic, 0, values("y")), kafka.ErrClosed, kafka.ErrNotSent)
	wantErr(t, client.Ensure(ctx, []kafka.TopicSpec{{Name: "z", Partitions: 1, Replication: 1}}), kafka.ErrClosed)
}

// TestC38_NoGoroutineLeaks: kafka-go#599, #979, #1038 leak goroutines on connect errors and with short-lived writers.
func TestC38_NoGoroutineLeaks(t *testing.T) { // not parallel: it counts goroutines
	cluster := newCluster(t)
	refused, ctx := refusedAddr(t), t.Context()
	before := goleak.IgnoreCurrent()

	client := newClient(t, kafka.Config{Brokers: []string{refused}})
	for range 1000 {
		if err := client.Publish(ctx, topic, 0, values("x")); err == nil {
			t.Fatal("published to nobody")
		}
	}
	goleak.VerifyNone(t, before) // even while the client is open

	for range 100 {
		client, err := kafka.NewClient(kafka.Config{Brokers: cluster.ListenAddrs()})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Publish(ctx, topic, 0, values("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Reader(topic, 0, kafka.Earliest()).Next(ctx); err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	goleak.VerifyNone(t, before)
}
