package machine

import (
	"fmt"
	"slices"
	"strings"
)

// room is how much memory can be had now: what the system calls available, or less where a control group allows less.
// Of what a group uses, the pages of files count as free: they are dropped where memory is wanted. ok is false where
// nothing is told.
func (f files) room() (free int64, how string, ok bool) {
	_, m := f.memory()
	if m != nil && m.AvailableB > 0 {
		free, how, ok = m.AvailableB, "MemAvailable", true
	}
	dirs, unified := f.groups("memory")
	for _, dir := range dirs {
		limit, left, reported := f.left(dir, unified)
		if reported && (!ok || left < free) {
			free, ok = left, true
			how = fmt.Sprintf("the control group's limit of %.2f GiB, less what it uses", float64(limit)/(1<<30))
		}
	}
	return max(free, 0), how, ok
}

// left is what a group may still take.
func (f files) left(dir string, unified bool) (limit, left int64, ok bool) {
	limits, uses, inactive := "memory.limit_in_bytes", "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}
	if unified {
		limits, uses, inactive = "memory.max", "memory.current", []string{"inactive_file", "active_file"}
	}
	limit = parseLimit(f.text(dir, limits))
	used, reported := f.number(dir, uses)
	if limit <= 0 || !reported {
		return 0, 0, false
	}
	for line := range strings.Lines(f.text(dir, "memory.stat")) {
		var name string
		var n int64
		if _, err := fmt.Sscan(line, &name, &n); err == nil && slices.Contains(inactive, name) && n > 0 {
			used -= min(n, used)
		}
	}
	return limit, limit - used, true
}
