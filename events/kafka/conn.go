package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// maxKeptBuffer is how large a connection's write buffer may stay between requests.
const maxKeptBuffer = 64 << 10

// longAgo is a deadline that ends a blocked read or write at once.
var longAgo = time.Unix(1, 0)

// conn is one authenticated connection to one broker. It carries one request at a time.
type conn struct {
	addr      string
	socket    net.Conn // the TCP connection
	stream    net.Conn // what bytes go through: the socket, or TLS on it
	reader    *protocol.Conn
	versions  map[protocol.ApiKey]int16
	lastID    int32
	buf       bytes.Buffer
	idleSince time.Time
}

// dial connects to a broker and authenticates. The context's deadline bounds all of it.
func (c *Client) dial(ctx context.Context, addr string) (*conn, error) {
	socket, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to kafka broker %s: %w", addr, err)
	}
	k, err := c.handshake(ctx, addr, socket)
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("connect to kafka broker %s: %w", addr, cause(ctx, err))
	}
	return k, nil
}

func (c *Client) handshake(ctx context.Context, addr string, socket net.Conn) (*conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := socket.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(longAgo) })
	defer stop()

	stream := socket
	if c.cfg.TLS != nil {
		cfg := c.cfg.TLS
		if cfg.ServerName == "" {
			cfg = cfg.Clone()
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(socket, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		stream = secure
	}

	k := &conn{addr: addr, socket: socket, stream: stream, reader: protocol.NewConn(stream, c.cfg.ClientID)}
	answer, err := k.reader.RoundTrip(new(apiversions.Request))
	if err != nil {
		return nil, fmt.Errorf("ask for the protocol versions (does the port want TLS or SASL?): %w", err)
	}
	versions := answer.(*apiversions.Response)
	if versions.ErrorCode != 0 {
		return nil, fmt.Errorf("ask for the protocol versions: %w", kafkago.Error(versions.ErrorCode))
	}
	k.versions = make(map[protocol.ApiKey]int16, len(versions.ApiKeys))
	for _, v := range versions.ApiKeys {
		key := protocol.ApiKey(v.ApiKey)
		k.versions[key] = key.SelectVersion(v.MinVersion, v.MaxVersion)
	}
	k.reader.SetVersions(k.versions)

	if c.sasl != nil {
		if err := authenticate(ctx, k.reader, addr, c.sasl); err != nil {
			return nil, fmt.Errorf("authenticate as %q with %s: %w", c.cfg.SASL.Username, c.sasl.Name(), err)
		}
	}
	return k, nil
}

func authenticate(ctx context.Context, pc *protocol.Conn, addr string, mechanism sasl.Mechanism) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	portNumber, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	ctx = sasl.WithMetadata(ctx, &sasl.Metadata{Host: host, Port: portNumber})

	answer, err := pc.RoundTrip(&saslhandshake.Request{Mechanism: mechanism.Name()})
	if err != nil {
		return err
	}
	if h := answer.(*saslhandshake.Response); h.ErrorCode != 0 {
		return fmt.Errorf("the broker offers %v: %w", h.Mechanisms, kafkago.Error(h.ErrorCode))
	}

	session, state, err := mechanism.Start(ctx)
	if err != nil {
		return err
	}
	for done := false; !done; {
		answer, err := pc.RoundTrip(&saslauthenticate.Request{AuthBytes: state})
		if errors.Is(err, io.EOF) {
			return kafkago.SASLAuthenticationFailed // some brokers say no by hanging up
		}
		if err != nil {
			return err
		}
		a := answer.(*saslauthenticate.Response)
		if a.ErrorCode != 0 {
			return fmt.Errorf("%w: %s", kafkago.Error(a.ErrorCode), a.ErrorMessage)
		}
		if done, state, err = session.Next(ctx, a.AuthBytes); err != nil {
			return err
		}
	}
	return nil
}

// roundTrip sends one request and reads its response. sent is false only when no byte of the request has left: the
// broker cannot know of it. After an error the connection is of no more use.
func (k *conn) roundTrip(ctx context.Context, clientID string, request protocol.Message) (response protocol.Message, sent bool, err error) {
	key := request.ApiKey()
	version := k.versions[key]
	if p, ok := request.(protocol.PreparedMessage); ok {
		p.Prepare(version)
	}
	k.lastID++
	k.buf.Reset()
	if err := protocol.WriteRequest(&k.buf, version, k.lastID, clientID, request); err != nil {
		return nil, false, fmt.Errorf("encode %s request: %w", key, err)
	}

	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, false, errors.New("a request needs a deadline") // a mistake of this package
	}
	if err := k.socket.SetDeadline(deadline); err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = k.socket.SetDeadline(longAgo) })
	defer func() {
		// Once the function has started it may set its deadline at any later moment, so the connection cannot be kept.
		if !stop() && err == nil {
			err = ctx.Err()
		}
	}()

	n, err := k.stream.Write(k.buf.Bytes())
	if k.buf.Cap() > maxKeptBuffer {
		k.buf = bytes.Buffer{}
	}
	if err != nil {
		return nil, n > 0, fmt.Errorf("kafka broker %s: %w", k.addr, cause(ctx, err))
	}
	var id int32
	err = guard(func() (err error) {
		id, response, err = protocol.ReadResponse(k.reader, key, version)
		return err
	})
	if err != nil {
		return nil, true, fmt.Errorf("kafka broker %s: %w", k.addr, cause(ctx, err))
	}
	if id != k.lastID {
		return nil, true, fmt.Errorf("kafka broker %s: answer %d to request %d", k.addr, id, k.lastID)
	}
	return response, true, nil
}

// guard turns a panic of the library's decoder, which some malformed answers cause, into an error.
func guard(decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed answer: %v", p)
		}
	}()
	return decode()
}

// cause adds the reason for which the context ended to the i/o error by which that became visible.
func cause(ctx context.Context, err error) error {
	reason := ctx.Err()
	if reason == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		reason = context.DeadlineExceeded // the connection's deadline is the context's, and came first
	}
	if reason == nil || errors.Is(err, reason) {
		return err
	}
	return fmt.Errorf("%w: %w", reason, err)
}

func (k *conn) close() { _ = k.socket.Close() }
