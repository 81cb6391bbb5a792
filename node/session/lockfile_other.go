//go:build !linux

package session

import "fmt"

// openInheritable refuses: only on Linux is it known which boot and which filesystem a lock is of.
func openInheritable(string) (LockFile, error) {
	return nil, fmt.Errorf("%w: only Linux has one", errNoProof)
}
