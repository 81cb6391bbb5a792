package config

import (
	"crypto/tls"
	"net"
	"strconv"
)

// Kafka is how a process reaches Kafka, and what it may write there.
type Kafka struct {
	// Host and Port are the one broker to ask for all others.
	Host string `envconfig:"KAFKA_HOST" default:"127.0.0.1" syntax:"host"`
	Port int    `envconfig:"KAFKA_PORT" default:"9092" range:"1..65535"`
	// Brokers, if there are any, are asked in place of Host and Port.
	Brokers Addresses `envconfig:"KAFKA_BROKERS"`

	Username string `envconfig:"KAFKA_USERNAME"`
	Password Secret `envconfig:"KAFKA_PASSWORD"`
	// SASLMechanism as it is set; Mechanism returns the one to use.
	SASLMechanism SASLMechanism `envconfig:"KAFKA_SASL_MECHANISM" words:"none,plain,scram-sha-256,scram-sha-512"`

	TLS         bool   `envconfig:"KAFKA_TLS" default:"false"`
	TLSCAFile   string `envconfig:"KAFKA_TLS_CA_FILE"`
	TLSCertFile string `envconfig:"KAFKA_TLS_CERT_FILE"`
	TLSKeyFile  string `envconfig:"KAFKA_TLS_KEY_FILE"`
	// TLSSkipVerify accepts any certificate of the server: whoever is between
	// can read and change everything.
	TLSSkipVerify bool `envconfig:"KAFKA_TLS_SKIP_VERIFY" default:"false"`

	// TopicPartitions and ReplicationFactor are those of the topics that the
	// controller creates. Topics that exist keep theirs.
	TopicPartitions   int `envconfig:"KAFKA_TOPIC_PARTITIONS" default:"6" range:"1..10000"`
	ReplicationFactor int `envconfig:"KAFKA_REPLICATION_FACTOR" default:"1" range:"1..100"`

	// EventMaxBytes is the size of the largest event as encoded; larger ones
	// are split. The broker's message.max.bytes must be larger still.
	EventMaxBytes int `envconfig:"EVENT_MAX_BYTES" default:"921600" range:"131072..16777216"`
}

// eventOverhead is how many bytes an event keeps for everything but the one
// attachments or the one result that it carries at least.
const eventOverhead = 64 << 10

// Addrs returns the brokers to ask, host:port each; there is at least one.
func (k Kafka) Addrs() []string {
	if len(k.Brokers) > 0 {
		return k.Brokers
	}
	return []string{net.JoinHostPort(k.Host, strconv.Itoa(k.Port))}
}

// Mechanism returns the SASL mechanism to use; it is never empty.
func (k Kafka) Mechanism() SASLMechanism {
	switch {
	case k.SASLMechanism != "":
		return k.SASLMechanism
	case k.Username != "":
		return SASLPlain
	default:
		return SASLNone
	}
}

// TLSConfig returns the TLS to use, nil for none. It reads the files that the
// configuration names; the error is an [Error].
func (k Kafka) TLSConfig() (*tls.Config, error) {
	made, problems := k.tls().config()
	return made, errorOf(problems)
}

func (k Kafka) tls() tlsSettings {
	return tlsSettings{"KAFKA_TLS", k.TLS, k.TLSCAFile, k.TLSCertFile, k.TLSKeyFile, k.TLSSkipVerify}
}

// rules returns the problems that show only in several fields together.
func (k Kafka) rules() []Problem {
	var problems []Problem
	if k.Mechanism() == SASLNone {
		if k.Password != "" {
			problems = append(problems, Problem{
				"KAFKA_PASSWORD", k.Password.String(), "it not set, or KAFKA_USERNAME and a KAFKA_SASL_MECHANISM other than none",
			})
		}
	} else {
		why := " for the SASL mechanism " + string(k.Mechanism())
		if k.Username == "" {
			problems = append(problems, Problem{"KAFKA_USERNAME", "", "a user name" + why})
		}
		if k.Password == "" {
			problems = append(problems, Problem{"KAFKA_PASSWORD", "", "a password" + why})
		}
	}
	_, files := k.tls().config()
	return append(problems, files...)
}

// fits returns a problem if an event cannot hold a payload of that size.
func (k Kafka) fits(variable string, size int) []Problem {
	if size <= k.EventMaxBytes-eventOverhead {
		return nil
	}
	return []Problem{{
		variable, strconv.Itoa(size),
		"at most " + strconv.Itoa(k.EventMaxBytes-eventOverhead) + " (EVENT_MAX_BYTES less " + strconv.Itoa(eventOverhead) + "), so that it fits into an event",
	}}
}
