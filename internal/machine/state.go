package machine

import "llmparity/internal/record"

// state reads the current state, except for the load.
func (f files) state() (s record.MachineState) {
	info, _ := f.proc.Meminfo() // empty if it can't be read
	s.FreeB, s.AvailableB = known(info.MemFreeBytes), known(info.MemAvailableBytes)
	s.SwapUsedB = max(0, known(info.SwapTotalBytes)-known(info.SwapFreeBytes))
	if p, err := f.proc.PSIStatsForResource("cpu"); err == nil && p.Some != nil {
		s.Pressure = &p.Some.Avg10
	}
	policies := f.policies()
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

// throttled counts thermal throttling events; nil if unknown. Shared events count once for each CPU, so only
// differences are meaningful.
func (f files) throttled() *int64 {
	sum, counted := int64(0), false
	for _, dir := range f.all(cpus + "/cpu[0-9]*/thermal_throttle") {
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
