package config

import (
	"crypto/tls"
	"net"
	"strconv"
)

// Redis is how a process reaches Redis: one server, a Cluster or a server that
// Sentinels name.
type Redis struct {
	// Host and Port are the one server, if there is neither a Cluster nor a Sentinel.
	Host string `envconfig:"REDIS_HOST" default:"127.0.0.1" syntax:"host"`
	Port int    `envconfig:"REDIS_PORT" default:"6379" range:"1..65535"`

	Username string `envconfig:"REDIS_USERNAME"`
	Password Secret `envconfig:"REDIS_PASSWORD"`
	// DB is the number of the database; a Cluster has only 0.
	DB int `envconfig:"REDIS_DB" default:"0" range:"0..1023"`

	// ClusterAddrs, if there are any, are nodes of a Redis Cluster.
	ClusterAddrs Addresses `envconfig:"REDIS_CLUSTER_ADDRS"`

	// SentinelAddrs, if there are any, are Sentinels to ask for the server that
	// they know as SentinelMaster.
	SentinelAddrs    Addresses `envconfig:"REDIS_SENTINEL_ADDRS"`
	SentinelMaster   string    `envconfig:"REDIS_SENTINEL_MASTER"`
	SentinelUsername string    `envconfig:"REDIS_SENTINEL_USERNAME"`
	SentinelPassword Secret    `envconfig:"REDIS_SENTINEL_PASSWORD"`

	// WaitReplicas is how many replicas must have a heartbeat until it counts; 0
	// if the server alone decides. It must be all that may be promoted.
	WaitReplicas int `envconfig:"REDIS_WAIT_REPLICAS" default:"0" range:"0..10"`

	TLS         bool   `envconfig:"REDIS_TLS" default:"false"`
	TLSCAFile   string `envconfig:"REDIS_TLS_CA_FILE"`
	TLSCertFile string `envconfig:"REDIS_TLS_CERT_FILE"`
	TLSKeyFile  string `envconfig:"REDIS_TLS_KEY_FILE"`
	// TLSSkipVerify accepts any certificate of the server: whoever is between
	// can read and change everything.
	TLSSkipVerify bool `envconfig:"REDIS_TLS_SKIP_VERIFY" default:"false"`
}

// Addrs returns the addresses to connect to, host:port each: the nodes of the
// Cluster, the Sentinels, or the one server. There is at least one.
func (r Redis) Addrs() []string {
	switch {
	case len(r.ClusterAddrs) > 0:
		return r.ClusterAddrs
	case len(r.SentinelAddrs) > 0:
		return r.SentinelAddrs
	default:
		return []string{net.JoinHostPort(r.Host, strconv.Itoa(r.Port))}
	}
}

// TLSConfig returns the TLS to use, nil for none. It reads the files that the
// configuration names; the error is an [Error].
func (r Redis) TLSConfig() (*tls.Config, error) {
	made, problems := r.tls().config()
	return made, errorOf(problems)
}

func (r Redis) tls() tlsSettings {
	return tlsSettings{"REDIS_TLS", r.TLS, r.TLSCAFile, r.TLSCertFile, r.TLSKeyFile, r.TLSSkipVerify}
}

// rules returns the problems that show only in several fields together.
func (r Redis) rules() []Problem {
	var problems []Problem
	add := func(variable, value, want string) {
		problems = append(problems, Problem{variable, value, want})
	}
	if r.Username != "" && r.Password == "" {
		add("REDIS_PASSWORD", "", "the password of REDIS_USERNAME")
	}
	if len(r.ClusterAddrs) > 0 {
		if r.DB != 0 {
			add("REDIS_DB", strconv.Itoa(r.DB), "0, because a Redis Cluster (REDIS_CLUSTER_ADDRS) has no other database")
		}
		if r.WaitReplicas != 0 {
			add("REDIS_WAIT_REPLICAS", strconv.Itoa(r.WaitReplicas), "0, because the shards of a Redis Cluster (REDIS_CLUSTER_ADDRS) have replicas of their own")
		}
		if len(r.SentinelAddrs) > 0 {
			add("REDIS_SENTINEL_ADDRS", r.SentinelAddrs.String(), "it not set, because REDIS_CLUSTER_ADDRS is set too")
		}
	}
	if len(r.SentinelAddrs) > 0 && r.SentinelMaster == "" {
		add("REDIS_SENTINEL_MASTER", "", "the name that the Sentinels of REDIS_SENTINEL_ADDRS know the server by")
	}
	if len(r.SentinelAddrs) == 0 {
		const want = "it not set, or REDIS_SENTINEL_ADDRS too"
		if r.SentinelMaster != "" {
			add("REDIS_SENTINEL_MASTER", r.SentinelMaster, want)
		}
		if r.SentinelUsername != "" {
			add("REDIS_SENTINEL_USERNAME", r.SentinelUsername, want)
		}
		if r.SentinelPassword != "" {
			add("REDIS_SENTINEL_PASSWORD", r.SentinelPassword.String(), want)
		}
	}
	if r.SentinelUsername != "" && r.SentinelPassword == "" {
		add("REDIS_SENTINEL_PASSWORD", "", "the password of REDIS_SENTINEL_USERNAME")
	}
	_, files := r.tls().config()
	return append(problems, files...)
}
