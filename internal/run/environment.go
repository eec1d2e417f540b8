package run

import (
	"context"
	"fmt"
	"os"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/machine"
	"llmparity/internal/record"
)

// heard is how long others on the machine are listened to, beside what else a run begins with.
const heard = 200 * time.Millisecond

// Environment describes the machine as it is now, for a run whose results lie in a folder.
func Environment(ctx context.Context, results string) record.Environment {
	return machine.Describe(ctx, machine.Options{Listen: heard,
		Disks: []machine.Folder{{Role: "results", Path: results},
			{Role: "cache", Path: cache.Dir(os.Getenv)}, {Role: "temporary", Path: os.TempDir()}}})
}

// load1 is the load average over the last minute; 0 where the system keeps none.
func load1(ctx context.Context) float64 { return machine.Load1(ctx) }

// unfit says what of a machine makes figures of it doubtful.
func unfit(env record.Environment) []record.Warning {
	var out []record.Warning
	if busy := float64(env.Cores) / 2; env.Load1 > busy {
		out = append(out, record.Warning{Code: "noisy-machine", Text: fmt.Sprintf(
			"the machine was busy before the run: load average %.1f on %d cores; times and rates may be off", env.Load1,
			env.Cores)})
	}
	if env.Memory == nil {
		return out
	}
	for _, r := range env.Memory.Reclaimers {
		if r.Some { // of processes that were chosen before any of ours was there
			continue
		}
		takes, idle := "takes", ""
		if r.Hidden {
			takes = "may take"
		}
		if r.IdleS > 0 {
			idle = fmt.Sprintf(" for %g s", r.IdleS)
		}
		return append(out, record.Warning{Code: "memory-reclaimed",
			Text: fmt.Sprintf("the kernel %s from processes by itself what has been idle%s (%s): "+
				"RSS and PSS fall then though nothing was freed, and mapped weights must be read again", takes, idle,
				r.By)})
	}
	return out
}
