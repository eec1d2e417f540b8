package machine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

const cpus = "sys/devices/system/cpu"

// processor describes the processor.
func (f files) processor(info cpuInfo) *record.Processor {
	p := &record.Processor{Vendor: info.vendor, Microcode: info.microcode, Logical: info.logical,
		Physical: len(info.cores),
		MHz:      info.mhz, SIMD: info.simd()}
	if n := listed(f.text(cpus, "online")); n > 0 {
		p.Logical = n
	}
	f.topology(p)
	f.frequencies(p)
	p.Caches = f.caches()
	p.NUMANodes = listed(f.text("sys/devices/system/node/online"))
	return p
}

// topology counts cores and sockets: CPUs that share a core list the same siblings.
func (f files) topology(p *record.Processor) {
	cores, sockets := map[string]bool{}, map[string]bool{}
	for _, dir := range f.all(cpus + "/cpu[0-9]*") {
		cores[cmp.Or(f.text(dir, "topology/core_cpus_list"), f.text(dir, "topology/thread_siblings_list"))] = true
		sockets[f.text(dir, "topology/physical_package_id")] = true
	}
	delete(cores, "")
	delete(sockets, "")
	p.Physical, p.Sockets = cmp.Or(len(cores), p.Physical), len(sockets)
	switch f.text(cpus, "smt/control") {
	case "on":
		p.SMT = "on"
	case "off", "forceoff":
		p.SMT = "off"
	case "notsupported":
		p.SMT = "not supported"
	}
	if active, ok := f.number(cpus, "smt/active"); ok && active == 0 && p.SMT == "on" {
		p.SMT = "off" // allowed, but no core has two threads
	}
}

// governors returns the frequency governors of policies, separated by commas.
func (f files) governors(policies []string) string {
	found := map[string]bool{}
	for _, policy := range policies {
		found[f.text(policy, "scaling_governor")] = true
	}
	delete(found, "")
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// policies returns the folders of groups of cores with a common frequency.
func (f files) policies() []string {
	if found := f.all(cpus + "/cpufreq/policy[0-9]*"); len(found) > 0 {
		return found
	}
	return f.all(cpus + "/cpu[0-9]*/cpufreq")
}

// asked limits how many current frequencies are read, because a driver may be slow.
const asked = 16

func (f files) frequencies(p *record.Processor) {
	reported := p.MHz > 0
	for i, policy := range f.policies() {
		p.Driver = cmp.Or(p.Driver, f.text(policy, "scaling_driver"))
		p.MaxMHz = max(p.MaxMHz, f.mhz(policy, "cpuinfo_max_freq"))
		if least := f.mhz(policy, "cpuinfo_min_freq"); least > 0 && (p.MinMHz == 0 || least < p.MinMHz) {
			p.MinMHz = least
		}
		if i < asked && !reported {
			p.MHz = max(p.MHz, f.mhz(policy, "scaling_cur_freq"))
		}
	}
	p.Turbo = f.turbo()
}

// mhz returns a frequency of a policy; 0 if unknown.
func (f files) mhz(policy, name string) float64 {
	khz, _ := f.number(policy, name)
	return float64(khz) / 1000
}

// turbo reports whether the processor may exceed its nominal frequency.
func (f files) turbo() string {
	if no, ok := f.number(cpus, "intel_pstate/no_turbo"); ok {
		return onOff(no == 0)
	}
	for _, dir := range append([]string{cpus + "/cpufreq"}, f.policies()...) {
		if boost, ok := f.number(dir, "boost"); ok {
			return onOff(boost == 1)
		}
	}
	return ""
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// caches counts each kind of cache: CPUs that share a cache have the same list.
func (f files) caches() []record.Cache {
	var out []record.Cache
	seen := map[string]bool{}
	for _, dir := range f.all(cpus + "/cpu[0-9]*/cache/index[0-9]*") {
		level, _ := f.number(dir, "level")
		key := f.text(dir, "level") + f.text(dir, "type") + " " + f.text(dir, "shared_cpu_list")
		size := parseSize(f.text(dir, "size"))
		if seen[key] || size == 0 {
			continue
		}
		seen[key] = true
		c := record.Cache{Level: int(level), Kind: strings.ToLower(f.text(dir, "type")), B: size, Instances: 1}
		same := func(o record.Cache) bool { return o.Level == c.Level && o.Kind == c.Kind && o.B == c.B }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Instances++
		} else {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b record.Cache) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.B, a.B))
	})
	return out
}

// parseSize parses a cache's size such as 32K; 0 if it is invalid.
func parseSize(text string) int64 {
	unit := int64(1)
	for suffix, bytes := range map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 33)
	if err != nil {
		return 0
	}
	return int64(n) * unit
}
