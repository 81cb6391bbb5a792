package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

const (
	// DefaultTimeout bounds a call whose context has no deadline.
	DefaultTimeout = 5 * time.Second

	// DefaultMaxMessageBytes is the largest record batch that Publish sends, as encoded. It lies just below what a
	// broker takes by default (message.max.bytes, 1,048,588).
	DefaultMaxMessageBytes = 1 << 20
)

// Mechanism names how a client authenticates. The empty value means not at all.
type Mechanism string

// The mechanisms that NewClient takes, in any case of letters.
const (
	MechanismNone        Mechanism = "none"
	MechanismPlain       Mechanism = "plain"
	MechanismScramSHA256 Mechanism = "scram-sha-256"
	MechanismScramSHA512 Mechanism = "scram-sha-512"
)

// SASL configures how the client authenticates to the brokers.
type SASL struct {
	Mechanism Mechanism
	Username  string
	Password  string
}

// Config configures a client.
type Config struct {
	// Brokers are host:port of some brokers; the others are learned from them. At least one.
	Brokers []string

	// TLS encrypts the connections; nil means plain text. An empty ServerName becomes each broker's host.
	TLS *tls.Config

	SASL SASL

	// ClientID is what the brokers' logs and quotas call this client. Default "skalds".
	ClientID string

	// Timeout bounds a call whose context has no deadline, and the silence after which a Reader drops a connection.
	// Default DefaultTimeout.
	Timeout time.Duration

	// MaxMessageBytes is the largest batch that Publish sends, as encoded. Default DefaultMaxMessageBytes.
	MaxMessageBytes int

	// Logger gets the outages and lost positions of readers. By default they are not logged.
	Logger *slog.Logger
}

// withDefaults returns the configuration with its gaps filled, or one error that names all that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	var problems []error
	if len(c.Brokers) == 0 {
		problems = append(problems, errors.New("brokers: none given; give at least one host:port"))
	}
	for _, b := range c.Brokers {
		if err := checkHostPort(b); err != nil {
			problems = append(problems, fmt.Errorf("brokers: %q: %w", b, err))
		}
	}
	if _, err := c.SASL.mechanism(); err != nil {
		problems = append(problems, err)
	}
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative; 0 means %s", c.Timeout, DefaultTimeout))
	}
	if c.MaxMessageBytes < 0 {
		problems = append(problems, fmt.Errorf("max message bytes: %d is negative; 0 means %d", c.MaxMessageBytes, DefaultMaxMessageBytes))
	}
	if len(problems) > 0 {
		return Config{}, fmt.Errorf("kafka configuration: %w", errors.Join(problems...))
	}

	c.Brokers = append([]string(nil), c.Brokers...)
	if c.ClientID == "" {
		c.ClientID = "skalds"
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func checkHostPort(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("want host:port")
	}
	if n, err := strconv.Atoi(port); err != nil || host == "" || n < 1 || n > 65535 {
		return errors.New("want host:port with a port of 1 to 65535")
	}
	return nil
}

// mechanism returns the library's form of the settings, nil for none.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	name := Mechanism(strings.ToLower(string(s.Mechanism)))
	switch name {
	case "", MechanismNone:
		return nil, nil
	case MechanismPlain, MechanismScramSHA256, MechanismScramSHA512:
		if s.Username == "" {
			return nil, fmt.Errorf("sasl: mechanism %q needs a user name", s.Mechanism)
		}
	default:
		return nil, fmt.Errorf("sasl: unknown mechanism %q; one of none, plain, scram-sha-256, scram-sha-512", s.Mechanism)
	}

	var m sasl.Mechanism
	var err error
	switch name {
	case MechanismScramSHA256:
		m, err = scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case MechanismScramSHA512:
		m, err = scram.Mechanism(scram.SHA512, s.Username, s.Password)
	default:
		m = plain.Mechanism{Username: s.Username, Password: s.Password}
	}
	if err != nil {
		return nil, fmt.Errorf("sasl: user %q: %w", s.Username, err)
	}
	return m, nil
}

// withTimeout bounds a call: by its context's own deadline or else by d, and by the life of the client.
func (c *Client) withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, d)
	}
	stop := context.AfterFunc(c.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
