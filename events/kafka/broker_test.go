package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// broker is one that can be restarted at its port with its log kept.
type broker struct {
	t       testing.TB
	addr    string
	port    int
	dir     string
	cluster *kfake.Cluster
}

func startBroker(t testing.TB) *broker {
	t.Helper()
	b := &broker{t: t, dir: t.TempDir()}
	b.start()
	t.Cleanup(func() { b.cluster.Close() })
	return b
}

func (b *broker) start() {
	b.t.Helper()
	cluster, err := kfake.NewCluster(kfake.Ports(b.port), kfake.DataDir(b.dir))
	if err != nil {
		b.t.Fatal(err)
	}
	b.cluster, b.addr = cluster, cluster.ListenAddrs()[0]
	_, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.port, err = strconv.Atoi(port)
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) stop() { b.cluster.Close() }

func (b *broker) restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

// accepted is a listener that can close the connections it has accepted.
type accepted struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (a *accepted) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	a.Listener = l
	return a, err
}

func (a *accepted) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.conns = append(a.conns, c)
	}
	return c, err
}

func (a *accepted) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = c.Close()
	}
	a.conns = nil
}

// certificates returns what a server and a client need to trust each other.
func certificates(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
