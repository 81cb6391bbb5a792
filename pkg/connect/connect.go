// Package connect makes the clients of Kafka and Redis from a configuration, in the same way for every process.
//
// Invariants: a client connects when it is first used. A fault in its part of the configuration is an error at once,
// which names the part.
package connect

import (
	"fmt"
	"log/slog"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry/redis"
)

// batchOverhead is the most that a record batch has besides its one event: key, headers and framing.
const batchOverhead = 32 << 10

// Kafka returns a client of Kafka, which the brokers know as clientID.
func Kafka(c config.Kafka, clientID string, log *slog.Logger) (*kafka.Client, error) {
	tls, err := c.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	client, err := kafka.NewClient(kafka.Config{
		Brokers: c.Addrs(), TLS: tls, ClientID: clientID,
		SASL:            kafka.SASL{Mechanism: kafka.Mechanism(c.Mechanism()), Username: c.Username, Password: string(c.Password)},
		MaxMessageBytes: c.EventMaxBytes + batchOverhead, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// Redis returns a registry in Redis.
func Redis(c config.Redis, log *slog.Logger) (*redis.Registry, error) {
	tls, err := c.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	r, err := redis.Open(redis.Config{
		Addrs: c.Addrs(), Cluster: len(c.ClusterAddrs) > 0, SentinelMaster: c.SentinelMaster,
		SentinelUsername: c.SentinelUsername, SentinelPassword: string(c.SentinelPassword),
		Username: c.Username, Password: string(c.Password), DB: c.DB, WaitReplicas: c.WaitReplicas, TLS: tls, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return r, nil
}
