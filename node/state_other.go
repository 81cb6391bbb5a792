//go:build !linux

package node

import "fmt"

// openLockedFile refuses: only on Linux is it known which boot and which filesystem a lock is of.
func openLockedFile(string) (lockedFile, string, error) {
	return nil, "", fmt.Errorf("%w: only Linux gives one", errNoProof)
}
