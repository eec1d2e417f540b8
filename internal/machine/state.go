package machine

import (
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// spread is how many processors are asked, evenly over all of them, where there are more: a state must be had quickly.
const spread = 32

// state reads what the machine is like now, but for its load.
func (f files) state() (s record.MachineState) {
	info := parseMemInfo(f.text("proc/meminfo"))
	s.FreeB, s.AvailableB = info["MemFree"], info["MemAvailable"]
	s.SwapUsedB = max(0, info["SwapTotal"]-info["SwapFree"])
	s.Pressure = parsePressure(f.text("proc/pressure/cpu"))
	policies := spreadOver(f.policies())
	for i, policy := range policies {
		s.MaxMHz = max(s.MaxMHz, f.mhz(policy, "scaling_max_freq"))
		if i < asked {
			s.MHz = max(s.MHz, f.mhz(policy, "scaling_cur_freq"))
		}
	}
	s.Governor = f.governors(policies)
	s.Throttled = f.throttled()
	return s
}

// throttled sums up how often processors were slowed because they were too hot; nil where the kernel does not count.
// What several have in common is counted for each, so that only differences mean something.
func (f files) throttled() *int64 {
	sum, counted := int64(0), false
	for _, dir := range spreadOver(f.all(cpus + "/cpu[0-9]*/thermal_throttle")) {
		for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
			if n, ok := f.number(dir, name); ok {
				sum, counted = sum+n, true
			}
		}
	}
	if !counted {
		return nil
	}
	return &sum
}

// spreadOver chooses some of many.
func spreadOver(all []string) []string {
	if len(all) <= spread {
		return all
	}
	out := make([]string, spread)
	for i := range out {
		out[i] = all[i*len(all)/spread]
	}
	return out
}

// parsePressure reads how much of the last ten seconds somebody waited for a processor, in percent; nil where the
// kernel does not tell.
func parsePressure(text string) *float64 {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "some avg10=")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, " ")
		if percent, err := strconv.ParseFloat(number, 64); err == nil && percent >= 0 && percent <= 100 {
			return &percent
		}
	}
	return nil
}
