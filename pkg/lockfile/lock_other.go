//go:build !windows && (!unix || aix)

package lockfile

import (
	"errors"
	"os"
)

// lock fails: without a lock nothing may be used that is for one process only.
func lock(*os.File) error { return errors.ErrUnsupported }
