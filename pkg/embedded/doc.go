// Package embedded runs a Kafka broker and a Redis server inside the process, for `skalds dev` and for tests.
//
// Both speak the real protocols on a loopback port, so clients in other processes and other languages can use them.
// Both keep their data in memory and drop it when they are closed, except a broker with a DataDir.
//
// Invariants:
//   - A server listens on 127.0.0.1 only.
//   - Port 0 takes a free port. If a port is taken, the error names it.
//   - Close may be called more than once and leaves no goroutine behind.
//   - Memory is bounded: topics that are created with TopicConfig are trimmed, and keys expire in real time.
//   - Nothing is printed.
package embedded

// loopback is the only address that the servers listen on.
const loopback = "127.0.0.1"
