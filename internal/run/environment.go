package run

import (
	"context"
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
	return machine.Describe(ctx, machine.Options{Listen: heard, Disks: []machine.Folder{{Role: "results", Path: results},
		{Role: "cache", Path: cache.Dir(os.Getenv)}, {Role: "temporary", Path: os.TempDir()}}})
}

// load1 is the load average over the last minute; 0 where the system keeps none.
func load1(ctx context.Context) float64 { return machine.Load1(ctx) }
