package session

import (
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no cgroups":             {nil, 0},
		"version 2, no limit":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"version 2, a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 536870912},
		"version 2, the least counts": {map[string]string{
			"proc/self/cgroup":                         "0::/a.slice/b.scope\n",
			"sys/fs/cgroup/a.slice/memory.max":         "1000\n",
			"sys/fs/cgroup/a.slice/b.scope/memory.max": "2000\n",
		}, 1000},
		"version 2, another one's": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/memory.max": "1000\n"}, 0},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "4096\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, 4096},
		"version 1, no limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"version 1, hidden path": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
		}, 4096},
		"rubbish": {map[string]string{"proc/self/cgroup": "x\n0::\n1:memory\n", "sys/fs/cgroup/memory.max": "-5"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for file, text := range tt.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := cgroupMemory(root); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestMemoryTotal(t *testing.T) {
	t.Parallel()
	if total := memoryTotal(); total < 1<<20 || total > 1<<50 {
		t.Errorf("this machine has %d bytes", total)
	}
}
