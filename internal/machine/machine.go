// Package machine says what a measurement is made on: system, processor, memory, limits, and what else goes on there.
//
// On Linux it reads /proc and /sys, and never another program's words; elsewhere it tells what the system's own calls
// give, which is less. What a machine does not tell is absent. GPUs are not its business but internal/sample/gpu's. Of
// other programs it reads names and times alone, no command lines.
//
// A virtual machine shows what its host lets it: frequencies, caches and temperatures may be missing, or be another
// machine's.
package machine

import (
	"cmp"
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"

	"llmparity/internal/record"
)

// Options say what else is to be described; the zero value is the machine alone.
type Options struct {
	// Listen is how long others on the machine are listened to; 0: not at all. Describe takes that long.
	Listen time.Duration
	// Disks are folders by their role; of one that does not exist yet the folder that it will lie in counts.
	Disks []Folder
}

// Folder is where something lies or will lie.
type Folder struct{ Role, Path string }

// Describe describes the machine as it is now.
func Describe(ctx context.Context, o Options) record.Environment {
	heard := listen(o.Listen)
	env := record.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU()}
	if platform, _, version, err := host.PlatformInformationWithContext(ctx); err == nil && platform != "" {
		env.OS = strings.TrimSpace(platform + " " + version)
	}
	if kernel, err := host.KernelVersionWithContext(ctx); err == nil {
		env.Kernel = kernel
	}
	if l, err := load.AvgWithContext(ctx); err == nil {
		env.Load1, env.Load5, env.Load15 = l.Load1, l.Load5, l.Load15
	}
	describe(ctx, &env)
	env.Disks = disks(ctx, o.Disks)
	env.Background = heard(ctx)
	return env
}

// State is what the machine is like at this moment, by what changes there. On Linux it reads a few small files, so that
// it can be asked before every launch; elsewhere it is the load and the memory alone.
func State(ctx context.Context) record.MachineState {
	s := state(ctx)
	s.Load1 = Load1(ctx)
	return s
}

// Load1 is the load average over the last minute; 0 where the system keeps none.
func Load1(ctx context.Context) float64 {
	if l, err := load.AvgWithContext(ctx); err == nil {
		return l.Load1
	}
	return 0
}

// CPU is the processor's name, else its architecture: what engines outside the browser compute on unless they have a
// GPU.
func CPU() string { return cmp.Or(processorName(), runtime.GOARCH) }

// display is what a program with a window would open it on.
func display(getenv func(string) string) string {
	switch {
	case getenv("WAYLAND_DISPLAY") != "":
		return "wayland"
	case getenv("DISPLAY") != "":
		return "x11"
	}
	return "none"
}
