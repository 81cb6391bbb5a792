package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// tlsSettings are the TLS variables of one server, KAFKA_TLS... or REDIS_TLS...
type tlsSettings struct {
	prefix     string // KAFKA_TLS
	on         bool
	caFile     string
	certFile   string
	keyFile    string
	skipVerify bool
}

// config returns what the settings make, nil when TLS is off, and everything
// that is wrong with them and with the files that they name.
func (t tlsSettings) config() (*tls.Config, []Problem) {
	if !t.on {
		return nil, t.unused()
	}
	var problems []Problem
	made := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.skipVerify, //nolint:gosec // off by default; its variable says what it costs
	}
	if t.caFile != "" {
		pool, err := readCAs(t.caFile)
		if err != nil {
			problems = append(problems, Problem{t.prefix + "_CA_FILE", t.caFile, err.Error()})
		}
		made.RootCAs = pool
	}
	switch {
	case t.certFile != "" && t.keyFile != "":
		cert, err := tls.LoadX509KeyPair(t.certFile, t.keyFile)
		if err != nil {
			problems = append(problems, Problem{
				t.prefix + "_CERT_FILE", t.certFile,
				fmt.Sprintf("a PEM certificate whose key is in %s_KEY_FILE (%q): %v", t.prefix, t.keyFile, err),
			})
		}
		made.Certificates = []tls.Certificate{cert}
	case t.certFile != "":
		problems = append(problems, Problem{t.prefix + "_KEY_FILE", "", "the key of the certificate in " + t.prefix + "_CERT_FILE"})
	case t.keyFile != "":
		problems = append(problems, Problem{t.prefix + "_CERT_FILE", "", "the certificate of the key in " + t.prefix + "_KEY_FILE"})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return made, nil
}

// unused returns a problem for every setting that has no effect because TLS is
// off: who sets one believes the connection to be encrypted.
func (t tlsSettings) unused() []Problem {
	var problems []Problem
	for _, s := range []struct{ variable, value string }{
		{"_CA_FILE", t.caFile},
		{"_CERT_FILE", t.certFile},
		{"_KEY_FILE", t.keyFile},
	} {
		if s.value != "" {
			problems = append(problems, Problem{t.prefix + s.variable, s.value, "it not set, or " + t.prefix + "=true"})
		}
	}
	if t.skipVerify {
		problems = append(problems, Problem{t.prefix + "_SKIP_VERIFY", strconv.FormatBool(true), "it not set, or " + t.prefix + "=true"})
	}
	return problems
}

func readCAs(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a file that can be read: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("a file with at least one PEM certificate")
	}
	return pool, nil
}
