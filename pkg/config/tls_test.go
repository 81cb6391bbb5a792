package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/config"
)

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", cert), writePEM(t, "PRIVATE KEY", private)
}

func writePEM(t *testing.T, kind string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTLSConfig(t *testing.T) {
	t.Parallel()
	cert, key := writePair(t)
	_, otherKey := writePair(t)

	off, err := config.Kafka{}.TLSConfig()
	if off != nil || err != nil {
		t.Errorf("off: got %v, %v", off, err)
	}

	kafka, err := config.Kafka{TLS: true, TLSCAFile: cert, TLSCertFile: cert, TLSKeyFile: key}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	if kafka.MinVersion != tls.VersionTLS12 || kafka.RootCAs == nil || len(kafka.Certificates) != 1 || kafka.InsecureSkipVerify {
		t.Errorf("kafka: got %+v", kafka)
	}
	redis, err := config.Redis{TLS: true, TLSSkipVerify: true}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	if redis.RootCAs != nil || len(redis.Certificates) != 0 || !redis.InsecureSkipVerify {
		t.Errorf("redis: got %+v", redis)
	}

	for name, tt := range map[string]struct {
		redis          config.Redis
		variable, want string
	}{
		"no such authority":   {config.Redis{TLS: true, TLSCAFile: "no/such"}, "REDIS_TLS_CA_FILE", "open no/such"},
		"key as authority":    {config.Redis{TLS: true, TLSCAFile: key}, "REDIS_TLS_CA_FILE", "at least one PEM certificate"},
		"no such certificate": {config.Redis{TLS: true, TLSCertFile: "no/such", TLSKeyFile: key}, "REDIS_TLS_CERT_FILE", "open no/such"},
		"key of another":      {config.Redis{TLS: true, TLSCertFile: cert, TLSKeyFile: otherKey}, "REDIS_TLS_CERT_FILE", "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := tt.redis.TLSConfig()
			if p := problems(t, err)[tt.variable]; made != nil || !strings.Contains(p.String(), tt.want) {
				t.Errorf("got %v, %v, want %q", made, err, tt.want)
			}
		})
	}
}
