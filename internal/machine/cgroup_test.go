package machine

import (
	"maps"
	"path"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/record"
)

// Lines of /proc/self/mountinfo from real systems.
const (
	unifiedMount = "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot"
	oldMounts    = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
	// of a Docker container without a name space of its own for groups: the root of the mount is its own group
	dockerMounts = "719 700 0:30 /docker/4f2a /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:15 - cgroup cgroup rw,memory\n" +
		"720 700 0:31 /docker/4f2a /sys/fs/cgroup/cpu ro,nosuid - cgroup cgroup rw,cpu,cpuacct"
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
		{"v1", oldMounts, "4:memory:/jobs/7\n2:cpu,cpuacct:/jobs/7\n0::/", map[string]string{
			"sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes":       "1073741824",
			"sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes":       "4096",
			"sys/fs/cgroup/memory/jobs/7/memory.memsw.limit_in_bytes": "1610612736",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":              "9223372036854771712",
			"sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us":       "50000",
			"sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us":      "100000",
			"sys/fs/cgroup/unified/memory.max":                        "1"}, // of a hierarchy that has no controllers
			&record.Limits{Version: "v1", CPUs: 0.5, MemoryB: 1 << 30, MemoryUseB: 4096, SwapB: swap(512 << 20)}},
		{"v1 without limits", oldMounts, "4:memory:/\n2:cpu,cpuacct:/\n0::/", map[string]string{
			"sys/fs/cgroup/memory/memory.limit_in_bytes":  "9223372036854771712",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "-1",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000"}, &record.Limits{Version: "v1"}},
		{"v1 in a container that sees its own group as the root", dockerMounts,
			"5:memory:/docker/4f2a\n4:cpu,cpuacct:/docker/4f2a", map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912",
				"sys/fs/cgroup/memory/memory.usage_in_bytes": "5",
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "200000",
				"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000"},
			&record.Limits{Version: "v1", CPUs: 2, MemoryB: 512 << 20, MemoryUseB: 5}},
		{"no groups", "22 27 0:21 / /proc rw - proc proc rw", "", nil, nil},
		{"nonsense in every file", unifiedMount, "0::/",
			map[string]string{"sys/fs/cgroup/cpu.max": "0 0", "sys/fs/cgroup/memory.max": "-5",
				"sys/fs/cgroup/memory.current": "x"}, &record.Limits{Version: "v2"}},
	} {
		m := map[string]string{"proc/self/mountinfo": c.mounts, "proc/self/cgroup": c.group}
		maps.Copy(m, c.files)
		if got := tree(m).limits(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func FuzzLimits(f *testing.F) {
	f.Add(unifiedMount, "0::/user.slice", "150000 100000", "4294967296")
	f.Add(oldMounts, "4:memory:/jobs/7\n2:cpu:/", "max 100000", "max")
	f.Add(dockerMounts, "5:memory:/docker/4f2a", "1 0", "-1")
	f.Add(`1 2 0:1 /a\040b /c\011d rw - cgroup2 x rw`, "0::/a b/../..", "", "")
	f.Fuzz(func(t *testing.T, mounts, groups, cpu, memory string) {
		for _, m := range parseMounts(mounts) {
			for _, group := range parseGroups(groups) {
				dirs := m.folders(group)
				top := strings.TrimPrefix(path.Clean("/"+m.at), "/")
				for _, dir := range dirs {
					if dir != path.Join(top, "/") && !strings.HasPrefix(dir, top) {
						t.Errorf("%q leads out of %q", dir, top)
					}
				}
			}
		}
		if n := parseCPUMax(cpu); n < 0 {
			t.Errorf("%q: %g", cpu, n)
		}
		if n := parseLimit(memory); n < 0 || n >= unlimited {
			t.Errorf("%q: %d", memory, n)
		}
		l := tree(map[string]string{"proc/self/mountinfo": mounts, "proc/self/cgroup": groups,
			"sys/fs/cgroup/cpu.max":    cpu,
			"sys/fs/cgroup/memory.max": memory}).limits()
		if l != nil && (l.CPUs < 0 || l.MemoryB < 0 || l.Version == "") {
			t.Errorf("%+v", l)
		}
	})
}
