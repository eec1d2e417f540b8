package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryGroup is the folder of a process's control group that accounts its memory, and the names of its files.
type memoryGroup struct {
	dir string
	names
}

// names are the files and fields of a version of control groups.
type names struct{ use, kills, inactive, active string }

var (
	version1 = names{"memory.usage_in_bytes", "memory.oom_control", "total_inactive_file", "total_active_file"}
	version2 = names{"memory.current", "memory.events", "inactive_file", "active_file"}
)

// groupOf finds the group of a process by the text of its /proc/PID/cgroup; false: it has none that is visible here.
func groupOf(text, mounted string) (g memoryGroup, ok bool) {
	for line := range strings.Lines(text) { // 7:memory:/path, or of version 2 0::/path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case strings.Contains(","+parts[1]+",", ",memory,"):
			return memoryGroup{filepath.Join(mounted, "memory", parts[2]), version1}, true
		case parts[0] == "0" && parts[1] == "":
			g, ok = memoryGroup{filepath.Join(mounted, parts[2]), version2}, true
		}
	}
	return g, ok
}

// group returns the control group of the container's first process.
func (c *Container) group() (memoryGroup, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.PID))
	if err != nil {
		return memoryGroup{}, false
	}
	return groupOf(string(text), "/sys/fs/cgroup")
}

// Left returns how much more memory the container may use; false: it has no limit, or that is unknown. Pages of files
// count as free, because they can be dropped.
func (c *Container) Left() (bytes int64, ok bool) {
	g, ok := c.group()
	if !ok || c.Memory == 0 {
		return 0, false
	}
	used, ok := g.number(g.use, "")
	if !ok {
		return 0, false
	}
	for _, name := range []string{g.inactive, g.active} {
		n, _ := g.number("memory.stat", name)
		used -= min(n, used)
	}
	return max(c.Memory-used, 0), true
}

// MemoryKills returns how many of the container's processes the kernel has ended at its memory limit; -1: unknown.
func (c *Container) MemoryKills() int {
	g, ok := c.group()
	if !ok {
		return -1
	}
	n, ok := g.number(g.kills, "oom_kill")
	if !ok {
		return -1
	}
	return int(n)
}

// number returns the number in a file, or that of a field.
func (g memoryGroup) number(file, field string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		value := strings.TrimSpace(line)
		if field != "" {
			name, rest, _ := strings.Cut(value, " ")
			if name != field {
				continue
			}
			value = rest
		}
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}
