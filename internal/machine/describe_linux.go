package machine

import (
	"context"
	"os"
	"time"

	"llmparity/internal/record"
)

func here() files { return files{os.DirFS("/")} }

func describe(_ context.Context, env *record.Environment) { here().describe(env, os.Getenv) }

func state(context.Context) record.MachineState { return here().state() }

func processorName() string { return parseCPUInfo(here().text("proc/cpuinfo")).name() }

// listen begins to listen to others; what it gives waits until that has been long enough.
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
