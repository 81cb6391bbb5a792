package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl"
)

const (
	// maxIdle is how many unused connections to one broker are kept.
	maxIdle = 64

	// idleTimeout is how long an unused connection is kept. Brokers close theirs after ten minutes by default.
	idleTimeout = time.Minute
)

// Client is a connection pool to one cluster. It is safe for concurrent use.
type Client struct {
	cfg  Config
	sasl sasl.Mechanism

	life context.Context // ends with Close
	end  context.CancelFunc

	mu        sync.Mutex
	idle      map[string][]*conn // by address; the one used last is the last
	leaders   map[topicPartition]string
	brokers   []string // learned from the cluster
	preferred string   // the address that answered last when any would do
}

// NewClient checks the configuration and returns a client. It does not connect; the first call does.
func NewClient(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	mechanism, err := cfg.SASL.mechanism()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Client{
		cfg: cfg, sasl: mechanism, life: life, end: end,
		idle: make(map[string][]*conn), leaders: make(map[topicPartition]string),
	}, nil
}

// Close ends every call that is under way with ErrClosed and closes the connections. It does not wait for the
// callers. Further calls do nothing.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	for _, conns := range c.idle {
		for _, k := range conns {
			k.close()
		}
	}
	c.idle = nil
}

// call sends one request to one broker, once. The context must have a deadline. sent is false only when no byte of
// the request has left.
func (c *Client) call(ctx context.Context, addr string, request protocol.Message) (response protocol.Message, sent bool, err error) {
	k, err := c.acquire(ctx, addr)
	if err != nil {
		return nil, false, c.whyEnded(err)
	}
	response, sent, err = k.roundTrip(ctx, c.cfg.ClientID, request)
	if err != nil {
		k.close()
		return nil, sent, c.whyEnded(err)
	}
	c.release(k)
	return response, sent, nil
}

// acquire takes an idle connection that is still good, or makes one.
func (c *Client) acquire(ctx context.Context, addr string) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		k := c.takeIdle(addr)
		if k == nil {
			return c.dial(ctx, addr)
		}
		if k.alive() {
			return k, nil
		}
		k.close()
	}
}

func (c *Client) takeIdle(addr string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	conns := c.idle[addr]
	if len(conns) == 0 {
		return nil
	}
	last := len(conns) - 1
	k := conns[last]
	conns[last] = nil
	c.idle[addr] = conns[:last]
	return k
}

// release keeps a connection for the next call and drops those that were not used for long.
func (c *Client) release(k *conn) {
	k.idleSince = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil || len(c.idle[k.addr]) >= maxIdle {
		k.close()
		return
	}
	c.idle[k.addr] = append(c.idle[k.addr], k)
	for addr, conns := range c.idle {
		old := 0
		for old < len(conns) && k.idleSince.Sub(conns[old].idleSince) > idleTimeout {
			conns[old].close()
			old++
		}
		if old == len(conns) {
			delete(c.idle, addr)
		} else if old > 0 {
			c.idle[addr] = append([]*conn(nil), conns[old:]...)
		}
	}
}

// whyEnded names the client's own end as the reason where it was the reason.
func (c *Client) whyEnded(err error) error {
	if c.life.Err() != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}
