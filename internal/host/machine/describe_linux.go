package machine

import (
	"context"
	"os"
	"time"

	"llmparity/internal/record"
)

func here() files { return at("/") }

func describe(_ context.Context, env *record.Environment) { here().describe(env, os.Getenv) }

func state(context.Context) record.MachineState { return here().state() }

// Stolen returns the CPU seconds that a hypervisor has given to other machines since boot; nil if unknown. It reads one
// small file, so it can be called around every launch.
func Stolen() *float64 {
	busy, stolen := here().busy()
	if busy == 0 {
		return nil
	}
	return &stolen
}

func processorName() string { return parseCPUInfo(here().text("proc/cpuinfo")).name() }

// listen starts observing other processes. The function that it returns waits until the time is over.
func listen(long time.Duration) func(context.Context) *record.Background {
	if long <= 0 {
		return func(context.Context) *record.Background { return nil }
	}
	before := here().work()
	return func(ctx context.Context) *record.Background {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(long - time.Since(before.at)):
		}
		return here().work().since(before, os.Getpid())
	}
}

// Room returns the available memory and where that figure comes from; ok is false if it is unknown.
func Room(context.Context) (free int64, how string, ok bool) { return here().room() }
