package session

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// memoryTotal returns how many bytes the process may use: the machine's memory, or the least limit of the cgroups that
// the process is in.
func memoryTotal() int64 {
	var machine int64
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		machine = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // types differ by platform; there is no such memory
	}
	if limit := cgroupMemory(os.DirFS("/")); limit > 0 && (machine == 0 || limit < machine) {
		return limit
	}
	return machine
}

// cgroupMemory returns the least memory limit, in bytes, of this process's cgroups and of those above them; 0 if none
// is known. In a container the file system mostly shows the container's own cgroup as the root.
func cgroupMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	look := func(mount, cgroup, file string) {
		for dir := path.Join("/", cgroup); ; dir = path.Dir(dir) {
			if b, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
				if v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && v > 0 { // else it is "max": no limit
					least = min(least, v)
				}
			}
			if dir == "/" {
				return
			}
		}
	}
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) { // number:controllers:path
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "":
			look("sys/fs/cgroup", parts[2], "memory.max")
		case strings.Contains(","+parts[1]+",", ",memory,"):
			look("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		}
	}
	if least >= unlimited {
		return 0
	}
	return least
}

// unlimited is above every memory. Version 1 of cgroups writes a number near the greatest int64 for no limit.
const unlimited = 1 << 60
