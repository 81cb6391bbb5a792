package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultTimeout bounds one round trip, and one dial, unless the configuration has another bound.
const DefaultTimeout = 2 * time.Second

// poolSize is the most connections of one process to one server. A node needs one or two, a controller a few.
const poolSize = 10

// Config describes how to reach Redis. Only Addrs is required: the other zero values mean a plain server without
// password.
type Config struct {
	// Addrs is host:port of the server; with Cluster, of some of its nodes; with SentinelMaster, of the sentinels.
	Addrs []string
	// Cluster means that Addrs are nodes of a Redis Cluster.
	Cluster bool
	// SentinelMaster is the name of the master as the sentinels know it; empty = no Sentinel.
	SentinelMaster string
	// SentinelUsername and SentinelPassword are for the sentinels, Username and Password for the servers.
	SentinelUsername, SentinelPassword string
	Username, Password                 string
	// DB is the number of the database. A cluster has only 0.
	DB int
	// WaitReplicas is how many replicas must have a heartbeat before it counts, and must follow the server from which a
	// snapshot is read. 0 means that the server alone decides. To be safe over a failover it must be the number of all
	// replicas that may be promoted. It cannot be used with Cluster.
	WaitReplicas int
	// TLS is used for every connection; nil = plain text.
	TLS *tls.Config
	// DialTimeout bounds one dial, Timeout one whole round trip. 0 means DefaultTimeout.
	DialTimeout, Timeout time.Duration
	// Logger reports keys that another program wrote, which no caller sees. nil means slog.Default().
	Logger *slog.Logger
}

func (c *Config) check() error {
	switch {
	case len(c.Addrs) == 0:
		return errors.New("no redis address is given")
	case c.Cluster && c.SentinelMaster != "":
		return errors.New("redis cannot be both a cluster and behind sentinels: set one of them")
	case c.Cluster && c.WaitReplicas != 0:
		return fmt.Errorf("replicas cannot be waited for in a redis cluster (WaitReplicas %d): its shards have replicas of their own", c.WaitReplicas)
	case c.WaitReplicas < 0:
		return fmt.Errorf("WaitReplicas is %d, at least 0 is needed", c.WaitReplicas)
	case c.Cluster && c.DB != 0:
		return fmt.Errorf("a redis cluster has only database 0, not %d", c.DB)
	case !c.Cluster && c.SentinelMaster == "" && len(c.Addrs) > 1:
		return fmt.Errorf("%d redis addresses are given (%s), but neither cluster nor sentinel: give one address, or say which of the two it is",
			len(c.Addrs), strings.Join(c.Addrs, ", "))
	}
	return nil
}

// client returns a connection pool. It does not connect. The library repeats no call and no dial: a node's trust counts
// from the time of sending, so the caller decides whether to try again and for how long. In a cluster the library
// follows redirections within the call's timeout.
func (c *Config) client() goredis.UniversalClient {
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case c.Cluster:
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs: c.Addrs, Username: c.Username, Password: c.Password, TLSConfig: c.TLS,
			MaxRetries: -1, DialerRetries: 1, DialTimeout: c.DialTimeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout,
			ContextTimeoutEnabled: true, PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true, MaintNotificationsConfig: quiet,
		})
	case c.SentinelMaster != "":
		return goredis.NewFailoverClient(&goredis.FailoverOptions{
			MasterName: c.SentinelMaster, SentinelAddrs: c.Addrs, SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
			Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
			MaxRetries: -1, DialerRetries: 1, DialTimeout: c.DialTimeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout,
			ContextTimeoutEnabled: true, PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true,
		})
	default:
		return goredis.NewClient(&goredis.Options{
			Addr: c.Addrs[0], Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
			MaxRetries: -1, DialerRetries: 1, DialTimeout: c.DialTimeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout,
			ContextTimeoutEnabled: true, PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true, MaintNotificationsConfig: quiet,
		})
	}
}
