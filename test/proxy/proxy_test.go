package proxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/test/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// say sends a word and gives what comes back.
func say(c net.Conn, word string) (string, error) {
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	back := make([]byte, len(word))
	_, err := io.ReadFull(c, back)
	return string(back), err
}

func works(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := say(c, "hello"); got != "hello" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
}

// ends waits for the end of a connection, which must not be the deadline.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	var timeout net.Error
	if got, err := say(c, "hello"); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("the connection lives: %q, %v", got, err)
	}
}

func TestCutEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	p := proxy.New(t, echo(t))
	c := dial(t, p)
	works(t, c)
	p.Cut()
	ends(t, c)
	// The end may come as early as in the dial.
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		ends(t, c)
		_ = c.Close()
	}
	p.Restore()
	works(t, dial(t, p))
	if got := p.Accepted(); got != 3 {
		t.Errorf("%d connections, want 3", got)
	}
}

func TestDropEndsConnectionsOnce(t *testing.T) {
	t.Parallel()
	p := proxy.New(t, echo(t))
	c := dial(t, p)
	works(t, c)
	p.Drop()
	ends(t, c)
	works(t, dial(t, p))
}

func TestStallHoldsAllBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	p := proxy.New(t, echo(t))
	old := dial(t, p)
	works(t, old)
	p.Stall()
	for _, c := range []net.Conn{old, dial(t, p)} {
		if _, err := io.WriteString(c, "held"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if n, err := c.Read(make([]byte, 8)); n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("%d bytes came through, %v", n, err)
		}
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			back := make([]byte, 4)
			if _, err := io.ReadFull(c, back); string(back) != "held" || err != nil {
				t.Errorf("%q, %v", back, err)
			}
			works(t, c)
		}()
	}
	p.Restore()
}

func TestDelayIsAddedEachWay(t *testing.T) {
	t.Parallel()
	p := proxy.New(t, echo(t))
	c := dial(t, p)
	works(t, c)
	const d = 30 * time.Millisecond
	p.Delay(d)
	began := time.Now()
	works(t, c)
	if took := time.Since(began); took < 2*d {
		t.Errorf("there and back in %s, want at least %s", took, 2*d)
	}
}

func TestKafkaTellsItsOwnAddress(t *testing.T) {
	t.Parallel()
	broker := echo(t)
	p := proxy.Kafka(t, broker)
	frame := func(addr string) []byte {
		host, text, _ := net.SplitHostPort(addr)
		port, _ := strconv.Atoi(text)
		body := binary.BigEndian.AppendUint32([]byte("before "+host), uint32(port))
		body = append(body, " after"...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	c := dial(t, p)
	sent := append(frame(broker), frame(broker)...)
	sent = append(sent, frame("127.0.0.1:1")...)
	go func() { // byte by byte: no read of the proxy sees a whole address
		for i := range sent {
			if _, err := c.Write(sent[i : i+1]); err != nil {
				return
			}
		}
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	want := append(frame(p.Addr()), frame(p.Addr())...)
	if want = append(want, frame("127.0.0.1:1")...); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
