//go:build !windows && (!unix || aix)

package lockfile

import (
	"errors"
	"os"
)

// lock refuses: what cannot be kept to one process is not to be used at all.
func lock(*os.File) error { return errors.ErrUnsupported }
