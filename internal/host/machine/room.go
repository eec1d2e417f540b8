package machine

import (
	"fmt"
	"strings"
)

// room returns the available memory: what the system reports, or less if a control group has a lower limit. File pages
// of the group count as free, because they can be dropped. ok is false if nothing is known.
func (f files) room() (free int64, how string, ok bool) {
	_, m := f.memory()
	if m != nil && m.AvailableB > 0 {
		free, how, ok = m.AvailableB, "MemAvailable", true
	}
	for _, dir := range f.groups() {
		limit, left, reported := f.left(dir)
		if reported && (!ok || left < free) {
			free, ok = left, true
			how = fmt.Sprintf("control group's limit of %.2f GiB, minus its use", float64(limit)/(1<<30))
		}
	}
	return max(free, 0), how, ok
}

// left returns how much more memory a group may use.
func (f files) left(dir string) (limit, left int64, ok bool) {
	limit = parseLimit(f.text(dir, "memory.max"))
	used, reported := f.number(dir, "memory.current")
	if limit <= 0 || !reported {
		return 0, 0, false
	}
	for line := range strings.Lines(f.text(dir, "memory.stat")) {
		var name string
		var n int64
		if _, err := fmt.Sscan(line, &name, &n); err == nil && n > 0 &&
			(name == "inactive_file" || name == "active_file") {
			used -= min(n, used)
		}
	}
	return limit, limit - used, true
}
