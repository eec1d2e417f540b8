package run

import (
	"fmt"
	"time"

	"llmparity/internal/record"
)

// heard is how long to observe the load from other processes.
const heard = 200 * time.Millisecond

// unfit warns of properties of the machine that make figures doubtful.
func unfit(env record.Environment) []record.Warning {
	var out []record.Warning
	if busy := float64(env.Cores) / 2; env.Load1 > busy {
		out = append(out, record.Warnf("noisy-machine", "load average was %.1f on %d cores before the run; speeds "+
			"may be too low", env.Load1, env.Cores))
	}
	if env.Memory == nil {
		return out
	}
	for _, r := range env.Memory.Reclaimers {
		if r.Some { // it acts on processes that were chosen before the run
			continue
		}
		verb, idle, in := "reclaims", "", ""
		if r.Hidden {
			verb = "may reclaim"
		}
		if r.IdleS > 0 {
			idle, in = fmt.Sprintf(" after %g s", r.IdleS), " in longer launches"
		}
		return append(out, record.Warnf("memory-reclaimed", "the kernel %s idle memory%s (%s); RSS and PSS can read "+
			"low%s", verb, idle, r.By, in))
	}
	return out
}
