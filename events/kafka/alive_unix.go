//go:build unix

package kafka

import (
	"crypto/tls"
	"syscall"
)

// alive reports whether an idle connection is still good. A broker that restarted, or that closed a connection for
// its idleness, has sent its end of stream long ago; to find that out only after the next request has been written
// would leave the outcome of that request unknown. It looks at the socket without waiting and without taking a byte.
func (k *conn) alive() bool {
	sc, ok := k.socket.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	_, secure := k.stream.(*tls.Conn)
	good := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR:
			good = true
		case err == nil && n > 0:
			good = secure // TLS has messages of its own; a plain broker has nothing to say unasked
		}
		return true
	})
	return err == nil && good
}
