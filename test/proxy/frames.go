package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
)

// framing makes a function that gives the next bytes to pass on, which are the caller's.
type framing func(from io.Reader) func() ([]byte, error)

// plain passes bytes on as they come.
func plain(from io.Reader) func() ([]byte, error) {
	buf := make([]byte, chunkSize)
	return func() ([]byte, error) {
		n, err := from.Read(buf)
		return bytes.Clone(buf[:n]), err
	}
}

// maxFrame bounds one answer of a broker.
const maxFrame = 128 << 20

// advertising replaces a broker's address by another one in what the broker answers.
//
// An answer is a length and that many bytes. It tells an address as the text of the host followed by the port as four
// bytes, which is replaced by as many bytes, so that nothing else has to be understood. Such a sequence stands nowhere
// else: what is in records here is JSON, which has no zero bytes.
func advertising(broker, own string) (framing, error) {
	from, err := address(broker)
	if err != nil {
		return nil, err
	}
	to, err := address(own)
	if err != nil {
		return nil, err
	}
	if len(from) != len(to) {
		return nil, fmt.Errorf("broker %s and proxy %s: the hosts must be equally long", broker, own)
	}
	return func(r io.Reader) func() ([]byte, error) {
		in := bufio.NewReaderSize(r, chunkSize)
		return func() ([]byte, error) {
			size, err := in.Peek(4)
			if err != nil {
				return nil, err
			}
			n := binary.BigEndian.Uint32(size)
			if n > maxFrame {
				return nil, fmt.Errorf("an answer of %d bytes", n)
			}
			frame := make([]byte, 4+int(n))
			if _, err := io.ReadFull(in, frame); err != nil {
				return nil, err
			}
			return bytes.ReplaceAll(frame, from, to), nil
		}
	}, nil
}

// address is host and port as a broker writes them.
func address(addr string) ([]byte, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w", addr, err)
	}
	return binary.BigEndian.AppendUint32([]byte(host), uint32(port)), nil
}
