package machine

import (
	"strings"
	"testing"
)

func TestRoomIsTightestLimit(t *testing.T) {
	const v2 = "30 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, c := range map[string]struct {
		files map[string]string
		free  int64
		how   string // a part of it; "": unknown
	}{
		"nothing": {nil, 0, ""},
		"the machine": {map[string]string{"proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\n"}, 60 << 10,
			"MemAvailable"},
		"v2, and its files are free": {map[string]string{"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 6000 kB\n",
			"proc/self/mountinfo": v2,
			"proc/self/cgroup":    "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000000",
			"sys/fs/cgroup/a/memory.current": "900000",
			"sys/fs/cgroup/a/b/memory.max":   "max", "sys/fs/cgroup/a/b/memory.current": "1",
			"sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 300000\nactive_file 100000\n"},
			500000, "control group"},
		"a group that has more than there is": {map[string]string{"proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\n", "proc/self/mountinfo": v2,
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000", "sys/fs/cgroup/memory.current": "0"},
			60 << 10, "MemAvailable"},
		"a group that uses more than it may": {map[string]string{"proc/self/mountinfo": v2,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "3000"}, 0, "control group"},
		"nonsense": {map[string]string{"proc/meminfo": "MemAvailable: -4 kB\n", "proc/self/mountinfo": v2,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "-1", "sys/fs/cgroup/memory.current": "x",
			"sys/fs/cgroup/memory.stat": "inactive_file\n\n"}, 0, ""},
	} {
		free, how, ok := tree(t, c.files).room()
		if free != c.free || ok != (c.how != "") || !strings.Contains(how, c.how) {
			t.Errorf("%s: %d by %q (%v), want %d by %q", name, free, how, ok, c.free, c.how)
		}
	}
}
