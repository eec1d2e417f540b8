package machine

import (
	"maps"
	"reflect"
	"testing"

	"llmparity/internal/record"
)

// Lines of /proc/self/mountinfo from real systems.
const (
	unifiedMount = "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot"
	// of a container without a name space of its own for groups: the root of the mount is its own group
	dockerMount = "719 700 0:30 /docker/4f2a /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime master:15 - cgroup2 cgroup rw"
)

func TestLimits(t *testing.T) {
	swap := func(b int64) *int64 { return &b }
	for _, c := range []struct {
		name, mounts, group string
		files               map[string]string
		want                *record.Limits
	}{
		{"v2 at the root of a name space", unifiedMount, "0::/",
			map[string]string{"sys/fs/cgroup/cpu.max": "150000 100000",
				"sys/fs/cgroup/memory.max": "4294967296", "sys/fs/cgroup/memory.current": "1073741824",
				"sys/fs/cgroup/memory.swap.max": "0"},
			&record.Limits{Version: "v2", CPUs: 1.5, MemoryB: 4 << 30, MemoryUseB: 1 << 30, SwapB: swap(0)}},
		{"v2 where the group above is tighter", unifiedMount, "0::/user.slice/app.scope", map[string]string{
			"sys/fs/cgroup/user.slice/app.scope/memory.max":      "8589934592",
			"sys/fs/cgroup/user.slice/app.scope/memory.current":  "1",
			"sys/fs/cgroup/user.slice/memory.max":                "2147483648",
			"sys/fs/cgroup/user.slice/memory.current":            "77",
			"sys/fs/cgroup/user.slice/app.scope/cpu.max":         "max 100000",
			"sys/fs/cgroup/user.slice/cpu.max":                   "400000 100000",
			"sys/fs/cgroup/user.slice/app.scope/memory.swap.max": "max"},
			&record.Limits{Version: "v2", CPUs: 4, MemoryB: 2 << 30, MemoryUseB: 77}},
		{"v2 without limits", unifiedMount, "0::/",
			map[string]string{"sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"},
			&record.Limits{Version: "v2"}},
		{"a container that sees its own group as the root", dockerMount, "0::/docker/4f2a",
			map[string]string{"sys/fs/cgroup/memory.max": "536870912", "sys/fs/cgroup/memory.current": "5",
				"sys/fs/cgroup/cpu.max": "200000 100000"},
			&record.Limits{Version: "v2", CPUs: 2, MemoryB: 512 << 20, MemoryUseB: 5}},
		{"controllers of version 1", unifiedMount, "4:memory:/jobs/7\n2:cpu,cpuacct:/jobs/7\n0::/",
			map[string]string{"sys/fs/cgroup/memory.max": "1"}, nil},
		{"no groups", "22 27 0:21 / /proc rw - proc proc rw", "", nil, nil},
		{"nonsense in every file", unifiedMount, "0::/",
			map[string]string{"sys/fs/cgroup/cpu.max": "0 0", "sys/fs/cgroup/memory.max": "-5",
				"sys/fs/cgroup/memory.current": "x"}, &record.Limits{Version: "v2"}},
	} {
		m := map[string]string{"proc/self/mountinfo": c.mounts, "proc/self/cgroup": c.group}
		maps.Copy(m, c.files)
		if got := tree(t, m).limits(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
