package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"llmparity/internal/record"
)

// groups returns the folders of our control group and its ancestors, the group first: the tightest limit applies. It
// returns none without groups, and for controllers of version 1, whose limits are not read.
func (f files) groups() []string {
	self, err := f.proc.Self()
	if err != nil {
		return nil
	}
	groups, err := self.Cgroups()
	mounts, err2 := f.proc.GetMounts()
	if err != nil || err2 != nil || slices.ContainsFunc(groups, func(g procfs.Cgroup) bool {
		return slices.Contains(g.Controllers, "memory") || slices.Contains(g.Controllers, "cpu")
	}) {
		return nil
	}
	unified := slices.IndexFunc(groups, func(g procfs.Cgroup) bool { return len(g.Controllers) == 0 })
	at := slices.IndexFunc(mounts, func(m *procfs.MountInfo) bool { return m.FSType == "cgroup2" })
	if unified < 0 || at < 0 {
		return nil
	}
	below, visible := strings.CutPrefix(groups[unified].Path, strings.TrimSuffix(mounts[at].Root, "/"))
	if !visible || below != "" && below[0] != '/' {
		below = "" // the mount's root is an ancestor of our group or the same
	}
	top := strings.TrimPrefix(path.Clean("/"+mounts[at].MountPoint), "/")
	var out []string
	for dir := path.Clean("/" + below); ; dir = path.Dir(dir) {
		out = append(out, path.Join(top, dir))
		if dir == "/" {
			return out
		}
	}
}

// limits returns the limits of our control group and its ancestors; nil without groups.
func (f files) limits() *record.Limits {
	dirs := f.groups()
	if dirs == nil {
		return nil
	}
	l := &record.Limits{Version: "v2"}
	for _, dir := range dirs {
		tighten(&l.CPUs, parseCPUMax(f.text(dir, "cpu.max")))
		if b := parseLimit(f.text(dir, "memory.max")); tighten(&l.MemoryB, b) {
			l.MemoryUseB, _ = f.number(dir, "memory.current")
		}
		text := f.text(dir, "memory.swap.max")
		if b := parseLimit(text); (text == "0" || b > 0) && (l.SwapB == nil || b < *l.SwapB) {
			l.SwapB = &b
		}
	}
	return l
}

// tighten takes a lower limit; 0 means none.
func tighten[T int64 | float64](limit *T, n T) bool {
	if n <= 0 || *limit > 0 && *limit <= n {
		return false
	}
	*limit = n
	return true
}

// parseCPUMax parses a quota such as 150000 100000, in cores; 0 without a quota.
func parseCPUMax(text string) float64 {
	quota, period, _ := strings.Cut(text, " ")
	q, err := strconv.ParseUint(quota, 10, 53) // fails for "max"
	p, err2 := strconv.ParseUint(period, 10, 53)
	if err != nil || err2 != nil || p == 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// parseLimit parses a limit in bytes; 0 without a limit.
func parseLimit(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 60)
	if err != nil { // "max"
		return 0
	}
	return int64(n)
}
