//go:build !unix

package node

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
