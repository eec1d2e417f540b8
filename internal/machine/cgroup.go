package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// mount is a mounted hierarchy of control groups.
type mount struct {
	root, at    string
	unified     bool     // v2 hierarchy
	controllers []string // of v1
}

// parseMounts finds the hierarchies in /proc/self/mountinfo.
func parseMounts(text string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if !ok || len(where) < 5 || len(what) < 3 || what[0] != "cgroup" && what[0] != "cgroup2" {
			continue
		}
		out = append(out, mount{root: unescape(where[3]), at: unescape(where[4]), unified: what[0] == "cgroup2",
			controllers: strings.Split(what[2], ",")})
	}
	return out
}

// unescape decodes a path in mountinfo, whose blanks are octal.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// parseGroups parses /proc/self/cgroup: the group of each controller; v2 has the empty name.
func parseGroups(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			out[name] = parts[2]
		}
	}
	return out
}

// folders returns the visible folders of a group and its ancestors, the group first. The tightest limit applies.
func (m mount) folders(group string) []string {
	below := group
	if m.root != "/" {
		rest, ok := strings.CutPrefix(group, m.root)
		if !ok || rest != "" && rest[0] != '/' {
			rest = "" // our group is not visible; the mount's root is an ancestor or the same
		}
		below = rest
	}
	top := strings.TrimPrefix(path.Clean("/"+m.at), "/")
	var out []string
	for dir := path.Clean("/" + below); ; dir = path.Dir(dir) {
		out = append(out, path.Join(top, dir))
		if dir == "/" {
			return out
		}
	}
}

// groups returns the folders of our group of a controller and its ancestors; none without groups.
func (f files) groups(controller string) (dirs []string, unified bool) {
	groups := parseGroups(f.text("proc/self/cgroup"))
	group, v1 := groups[controller] // if both versions are mounted, each controller belongs to one
	unifiedGroup, v2 := groups[""]
	if !v1 {
		group = unifiedGroup
	}
	for _, m := range parseMounts(f.text("proc/self/mountinfo")) {
		if v1 && slices.Contains(m.controllers, controller) || !v1 && v2 && m.unified {
			return m.folders(group), m.unified
		}
	}
	return nil, false
}

// limits returns the limits of our control group and its ancestors; nil without groups.
func (f files) limits() *record.Limits {
	var l record.Limits
	for _, controller := range []string{"cpu", "memory"} {
		dirs, unified := f.groups(controller)
		for _, dir := range dirs {
			l.Version = map[bool]string{true: "v2", false: "v1"}[unified]
			f.limit(&l, controller, dir, unified)
		}
	}
	if l.Version == "" {
		return nil
	}
	return &l
}

// limit takes the limits of one group if they are tighter.
func (f files) limit(l *record.Limits, controller, dir string, unified bool) {
	switch {
	case controller == "cpu" && unified:
		tighten(&l.CPUs, parseCPUMax(f.text(dir, "cpu.max")))
	case controller == "cpu":
		quota, ok := f.number(dir, "cpu.cfs_quota_us")
		period, ok2 := f.number(dir, "cpu.cfs_period_us")
		if ok && ok2 && quota > 0 && period > 0 {
			tighten(&l.CPUs, float64(quota)/float64(period))
		}
	case unified:
		if b := parseLimit(f.text(dir, "memory.max")); tighten(&l.MemoryB, b) {
			l.MemoryUseB, _ = f.number(dir, "memory.current")
		}
		if text := f.text(dir, "memory.swap.max"); text == "0" || parseLimit(text) > 0 {
			f.swap(l, parseLimit(text))
		}
	default:
		b := parseLimit(f.text(dir, "memory.limit_in_bytes"))
		if tighten(&l.MemoryB, b) {
			l.MemoryUseB, _ = f.number(dir, "memory.usage_in_bytes")
		}
		if both := parseLimit(f.text(dir, "memory.memsw.limit_in_bytes")); b > 0 && both >= b {
			f.swap(l, both-b)
		}
	}
}

func (files) swap(l *record.Limits, b int64) {
	if l.SwapB == nil || b < *l.SwapB {
		l.SwapB = &b
	}
}

// tighten takes a lower limit; 0 means none.
func tighten[T int64 | float64](limit *T, n T) bool {
	if n <= 0 || *limit > 0 && *limit <= n {
		return false
	}
	*limit = n
	return true
}

// parseCPUMax parses a v2 quota such as 150000 100000, in cores; 0 without a quota.
func parseCPUMax(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	quota, err := strconv.ParseUint(fields[0], 10, 53) // fails for "max"
	period, err2 := strconv.ParseUint(fields[1], 10, 53)
	if err != nil || err2 != nil || period == 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// unlimited is below the value that v1 has for no limit, the largest multiple of the page size.
const unlimited = 1 << 60

// parseLimit parses a limit in bytes; 0 without a limit.
func parseLimit(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 63) // fails for "max"
	if err != nil || n >= unlimited {
		return 0
	}
	return int64(n)
}
