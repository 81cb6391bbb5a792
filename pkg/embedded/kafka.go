package embedded

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	// kafkaRetentionBytes, kafkaSegmentBytes and kafkaRetentionMs bound what one partition holds: 4 MiB and one
	// segment at most, and nothing for longer than five minutes. The bound is wide enough for a reader that lags
	// behind a burst by several seconds, and small enough for a laptop.
	kafkaRetentionBytes = 4 << 20
	kafkaSegmentBytes   = 512 << 10
	kafkaRetentionMs    = 5 * 60 * 1000

	// kafkaCleanerMs is how often the broker trims its logs. Its own default, an hour, lets memory grow for an hour.
	kafkaCleanerMs = 1000

	// kafkaDefaultPartitions is the number of partitions of a topic whose creator names none.
	kafkaDefaultPartitions = 6
)

// KafkaConfig configures the embedded broker.
type KafkaConfig struct {
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// DataDir is the directory for topics and logs, for one broker at a time. It is created if missing. A broker that
	// starts on it has all that the last one acknowledged, however that one ended, except after a power cut. Empty
	// keeps everything in memory.
	DataDir string
}

// Kafka is one broker in this process.
type Kafka struct {
	cluster *kfake.Cluster
	addr    string
	kept    bool // in a DataDir
	close   sync.Once
}

// StartKafka starts one broker without topics; it creates none by itself. Create topics with TopicConfig: others are
// trimmed by the same limits, but only once some topic was created with it.
func StartKafka(cfg KafkaConfig) (*Kafka, error) {
	opts := []kfake.Opt{
		kfake.Ports(cfg.Port),
		kfake.ClusterID("skalds-dev"),
		kfake.DefaultNumPartitions(kafkaDefaultPartitions),
		kfake.BrokerConfigs(map[string]string{
			"log.cleaner.backoff.ms": strconv.Itoa(kafkaCleanerMs),
			"log.retention.bytes":    strconv.Itoa(kafkaRetentionBytes),
			"log.retention.ms":       strconv.Itoa(kafkaRetentionMs),
			"log.segment.bytes":      strconv.Itoa(kafkaSegmentBytes),
		}),
	}
	if cfg.DataDir != "" {
		opts = append(opts, kfake.DataDir(cfg.DataDir))
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("start the embedded kafka broker on port %d: %w", cfg.Port, err)
	}
	return &Kafka{cluster: cluster, addr: cluster.ListenAddrs()[0], kept: cfg.DataDir != ""}, nil
}

// Addr returns host:port of the broker.
func (k *Kafka) Addr() string { return k.addr }

// Close stops the broker and drops what it keeps in memory. Further calls do nothing.
func (k *Kafka) Close() { k.close.Do(k.cluster.Close) }

// TopicConfig returns the configuration with which every topic on this broker must be created. With a DataDir it bounds
// only the size: a log that was trimmed to nothing by its age would begin at offset 0 again after a restart.
func (k *Kafka) TopicConfig() map[string]string {
	config := TopicConfig()
	if k.kept {
		config["retention.ms"] = "-1"
	}
	return config
}

// TopicConfig returns the configuration with which every topic on a broker in memory must be created: a small
// retention, without which its memory would grow for ever. Each call returns a new map.
func TopicConfig() map[string]string {
	return map[string]string{
		"retention.bytes": strconv.Itoa(kafkaRetentionBytes),
		"retention.ms":    strconv.Itoa(kafkaRetentionMs),
		"segment.bytes":   strconv.Itoa(kafkaSegmentBytes),
	}
}
