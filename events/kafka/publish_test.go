package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/skalds-go/skalds/events/kafka"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	client := connect(t, newCluster(t))
	at := time.UnixMilli(1_700_000_000_123)
	want := []kafka.Record{
		{Time: at, Key: []byte("id-1"), Value: []byte(`{"v":1}`), Headers: []kafka.Header{{Key: "traceparent", Value: []byte("00-1")}, {Key: "empty", Value: []byte{}}}},
		{Time: at.Add(time.Hour), Key: []byte{}, Value: nil},
		{Time: at.Add(-time.Hour), Key: nil, Value: []byte("täsk\x00\xff")},
	}
	if err := client.Publish(t.Context(), topic, 0, want); err != nil {
		t.Fatal(err)
	}
	reader := client.Reader(topic, 0, kafka.Earliest())
	got, err := reader.Next(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Offset = int64(i)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}

	before := time.Now().Add(-time.Millisecond)
	publish(t, client, "now")
	got, err = reader.Next(within(t, 5*time.Second))
	if err != nil || got[0].Time.Before(before) || got[0].Time.After(time.Now()) {
		t.Errorf("a record without a time reads %v, %v; want the present", got, err)
	}
}

func TestPublishNothing(t *testing.T) {
	t.Parallel()
	client := newClient(t, kafka.Config{Brokers: []string{"127.0.0.1:1"}})
	if err := client.Publish(t.Context(), topic, 0, nil); err != nil {
		t.Errorf("publish no records: %v", err)
	}
}

// refusedAddr returns an address at which nobody listens.
func refusedAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// silentServer accepts connections and reads, and never says a word.
func silentServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }()
		}
	}()
	return l.Addr().String()
}

func TestErrNotSentBeforeTheRequestLeaves(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel2 := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel2()

	for _, tt := range []struct {
		name    string
		brokers []string
		ctx     context.Context
		topic   string
		part    int
		value   int
		want    error
	}{
		{name: "connection refused", brokers: []string{refusedAddr(t)}},
		{name: "broker that says nothing", brokers: []string{silentServer(t)}, ctx: within(t, 50*time.Millisecond), want: context.DeadlineExceeded},
		{name: "cancelled before", ctx: cancelled, want: context.Canceled},
		{name: "out of time before", ctx: expired, want: context.DeadlineExceeded},
		{name: "unknown topic", topic: "nobody-made-it", want: kafka.ErrUnknownTopic},
		{name: "unknown partition", part: 7, want: kafka.ErrUnknownTopic},
		{name: "too large for the client", value: kafka.DefaultMaxMessageBytes, want: kafka.ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			brokers, ctx, name := tt.brokers, tt.ctx, topic
			if brokers == nil {
				brokers = cluster.ListenAddrs()
			}
			if ctx == nil {
				ctx = t.Context()
			}
			if tt.topic != "" {
				name = tt.topic
			}
			client := newClient(t, kafka.Config{Brokers: brokers})
			err := client.Publish(ctx, name, tt.part, []kafka.Record{{Value: make([]byte, tt.value)}})
			wantErr(t, err, kafka.ErrNotSent)
			if tt.want != nil {
				wantErr(t, err, tt.want)
			}
		})
	}
}

func TestErrNotSentWhenTheLeaderIsGone(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	publish(t, client, "one") // now the leader is known, and a connection is open
	cluster.Close()
	// The first call may still find the old connection open.
	_ = client.Publish(within(t, 5*time.Second), topic, 0, values("two"))
	for range 3 {
		err := client.Publish(within(t, 5*time.Second), topic, 0, values("three"))
		wantErr(t, err, kafka.ErrNotSent)
	}
}

func TestPublishFindsTheNewLeader(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	client := connect(t, cluster)
	failures := 0
	for i := range 9 {
		if err := cluster.MoveTopicPartition(topic, 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		if err := client.Publish(t.Context(), topic, 0, values("x")); err != nil {
			failures++ // it is one try: the old leader refused, and the caller decides
			publish(t, client, "x")
		}
	}
	if failures < 8 {
		t.Errorf("%d failures: the leader did not move under the client", failures)
	}
}

func TestTooLargeForTheBroker(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "1000"}))
	client := connect(t, cluster)
	err := client.Publish(t.Context(), topic, 0, []kafka.Record{{Value: make([]byte, 2000)}})
	wantErr(t, err, kafka.ErrNotSent, kafka.ErrTooLarge)
}

// TestProduceErrorCodes answers a produce request with every code there is.
func TestProduceErrorCodes(t *testing.T) {
	t.Parallel()
	certain := map[string]bool{
		"CORRUPT_MESSAGE": true, "MESSAGE_TOO_LARGE": true, "INVALID_TOPIC_EXCEPTION": true, "RECORD_LIST_TOO_LARGE": true,
		"NOT_ENOUGH_REPLICAS": true, "INVALID_REQUIRED_ACKS": true, "TOPIC_AUTHORIZATION_FAILED": true,
		"CLUSTER_AUTHORIZATION_FAILED": true, "INVALID_TIMESTAMP": true, "UNSUPPORTED_VERSION": true,
		"UNSUPPORTED_FOR_MESSAGE_FORMAT": true, "POLICY_VIOLATION": true, "UNSUPPORTED_COMPRESSION_TYPE": true, "INVALID_RECORD": true,
	}
	large := map[string]bool{"MESSAGE_TOO_LARGE": true, "RECORD_LIST_TOO_LARGE": true}
	cluster := newCluster(t)
	client := connect(t, cluster)
	seen := 0
	for code := int16(-1); code < 140; code++ {
		err := kerr.ErrorForCode(code)
		var known *kerr.Error
		if code == 0 || !errors.As(err, &known) || (known == kerr.UnknownServerError && code != -1) {
			continue
		}
		if certain[known.Message] {
			seen++
		}
		t.Run(known.Message, func(t *testing.T) {
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: known})
			defer fault.Remove()
			err := client.Publish(within(t, 5*time.Second), topic, 0, values("x"))
			if err == nil || fault.Hits() != 1 {
				t.Fatalf("error %v after %d tries, want one try and its error", err, fault.Hits())
			}
			if got := errors.Is(err, kafka.ErrNotSent); got != certain[known.Message] {
				t.Errorf("not sent: %v, want %v: %v", got, certain[known.Message], err)
			}
			if got := errors.Is(err, kafka.ErrTooLarge); got != large[known.Message] {
				t.Errorf("too large: %v, want %v: %v", got, large[known.Message], err)
			}
		})
	}
	if seen != len(certain) {
		t.Errorf("tried %d of the %d codes that are certain", seen, len(certain))
	}
}

// TestErrNotSentIsTrue looks into the log after every answer that leaves a doubt.
func TestErrNotSentIsTrue(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotEnoughReplicas, kerr.MessageTooLarge} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			client := connect(t, cluster)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: code})
			err := client.Publish(within(t, 5*time.Second), topic, 0, values("x"))
			ranges, rangeErr := client.Offsets(t.Context(), topic, []int{0})
			if rangeErr != nil {
				t.Fatal(rangeErr)
			}
			if ranges[0].End > 0 && errors.Is(err, kafka.ErrNotSent) {
				t.Errorf("the record is in the log, and the error says that it was not sent: %v", err)
			}
		})
	}
}

func TestOutcomeUnknownAfterTheRequestLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer error // nil: none ever comes
		want   error
	}{
		{name: "connection closed while waiting", answer: errors.New("hang up")},
		{name: "no answer in time", want: context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			client := connect(t, cluster)
			publish(t, client, "first")
			var tries atomic.Int32
			cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				tries.Add(1)
				return nil, tt.answer, true
			})
			err := client.Publish(within(t, 100*time.Millisecond), topic, 0, values("second"))
			if err == nil || errors.Is(err, kafka.ErrNotSent) {
				t.Errorf("want an error that leaves the outcome open, got %v", err)
			}
			if tt.want != nil {
				wantErr(t, err, tt.want)
			}
			cluster.Close()
			if n := tries.Load(); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
		})
	}
}

func TestOutcomeUnknownWhenCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	ctx, cancel := context.WithCancel(within(t, 10*time.Second))
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel()
		return nil, nil, true
	})
	err := client.Publish(ctx, topic, 0, values("x"))
	wantErr(t, err, context.Canceled)
	if errors.Is(err, kafka.ErrNotSent) {
		t.Errorf("the request had left: %v", err)
	}
}

func TestOwnTimeout(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := newClient(t, kafka.Config{Brokers: cluster.ListenAddrs(), Timeout: 50 * time.Millisecond})
	publish(t, client, "first")
	var ack atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		ack.Store(r.(*kmsg.ProduceRequest).TimeoutMillis)
		return nil, nil, true
	})
	err := client.Publish(t.Context(), topic, 0, values("second"))
	wantErr(t, err, context.DeadlineExceeded)
	if ms := ack.Load(); ms < 1 || ms > 45 {
		t.Errorf("the broker may wait %d ms for its followers, want less than the caller's 50", ms)
	}
}

// TestIdleConnectionThatTheBrokerClosed: it must be noticed before the request is sent, so that it costs no record
// its certain outcome.
func TestIdleConnectionThatTheBrokerClosed(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conns := new(accepted)
			opts, cfg := []kfake.Opt{kfake.ListenFn(conns.listen)}, kafka.Config{}
			if secure {
				server, client := certificates(t)
				opts, cfg.TLS = append(opts, kfake.TLS(server)), client
			}
			cluster := newCluster(t, opts...)
			cfg.Brokers = cluster.ListenAddrs()
			client := newClient(t, cfg)
			for i := range 20 {
				publish(t, client, fmt.Sprint(i))
				conns.closeAll()
			}
		})
	}
}

// TestC35_NoEventWaitsForABatch: each call is a request of its own, whether or not others come at the same time. There
// is nothing that gathers records, and so nothing that waits for more of them. (That nothing before and behind waits
// for a timer, TestS12 shows in fake time.)
func TestC35_NoEventWaitsForABatch(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	requests := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
	for i := range 50 {
		publish(t, client, fmt.Sprint(i))
		if n := requests.Hits(); n != i+1 {
			t.Fatalf("%d requests after %d calls", n, i+1)
		}
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := client.Publish(t.Context(), topic, 0, values(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := requests.Hits(); n != 100 {
		t.Errorf("%d requests after 50 calls at the same time, want one for each", n-50)
	}
}

func TestMaxMessageBytesIsTheEncodedSize(t *testing.T) {
	t.Parallel()
	client := newClient(t, kafka.Config{Brokers: newCluster(t).ListenAddrs(), MaxMessageBytes: 1000})
	size := func(value int) []kafka.Record { return []kafka.Record{{Value: bytes.Repeat([]byte("x"), value)}} }
	const overhead = 61 + 9 // batch; length, attributes, time, offset, key, value length (2), headers
	if err := client.Publish(t.Context(), topic, 0, size(1000-overhead)); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
	err := client.Publish(t.Context(), topic, 0, size(1001-overhead))
	wantErr(t, err, kafka.ErrTooLarge, kafka.ErrNotSent)
	if err != nil && !strings.Contains(err.Error(), "1001") {
		t.Errorf("error %q does not say how large the records are", err)
	}
}
