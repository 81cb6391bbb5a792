package session

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// highDescriptor is where the lock's descriptor is put: above those that a child gets for its own files, which would
// replace it.
const highDescriptor = 200

// localFilesystems are the kinds of filesystem on which a lock is held by processes of this machine alone. On any other
// it proves nothing.
var localFilesystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.REISERFS_SUPER_MAGIC: "reiserfs",
	0x2fc12fc1: "zfs", 0xca451a4e: "bcachefs", 0x3153464a: "jfs",
}

// bootIDPath holds a text that is another one after each boot of the machine.
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// inheritable is an open file whose descriptor children inherit.
type inheritable struct {
	fd   int
	boot string
}

func openInheritable(path string) (LockFile, error) {
	id, err := os.ReadFile(bootIDPath)
	boot := strings.TrimSpace(string(id))
	if err != nil || boot == "" {
		return nil, fmt.Errorf("%w: %s names no boot: %w", errNoProof, bootIDPath, err)
	}
	low, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = unix.Close(low) }()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(low, &fs); err != nil {
		return nil, fmt.Errorf("statfs: %w", err)
	}
	if _, ok := localFilesystems[int64(fs.Type)&0xffffffff]; !ok { //nolint:unconvert // the type differs between machines
		return nil, fmt.Errorf("%w: the filesystem (type %#x) is not one that is known to be of this machine alone", errNoProof, fs.Type)
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD, highDescriptor)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMFILE) { // so high none is allowed
		fd, err = unix.FcntlInt(uintptr(low), unix.F_DUPFD, 3)
	}
	if err != nil {
		return nil, fmt.Errorf("duplicate the descriptor: %w", err)
	}
	return &inheritable{fd, boot}, nil
}

// TryLock implements [LockFile].
func (f *inheritable) TryLock() (bool, error) {
	for {
		switch err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("flock: %w", err)
		}
	}
}

// maxRecord is longer than any record.
const maxRecord = 4 << 10

// Read implements [LockFile].
func (f *inheritable) Read() ([]byte, error) {
	b := make([]byte, maxRecord)
	n, err := unix.Pread(f.fd, b, 0)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return b[:n], nil
}

// Write implements [LockFile]. Content that is cut off does not decode, and so proves nothing.
func (f *inheritable) Write(b []byte) error {
	if err := unix.Ftruncate(f.fd, 0); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	if _, err := unix.Pwrite(f.fd, b, 0); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Close implements [LockFile].
func (f *inheritable) Close() error {
	if err := unix.Close(f.fd); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Boot implements [LockFile].
func (f *inheritable) Boot() string { return f.boot }
