// Package machine describes the machine: system, processor, memory, limits, and the load from other programs.
//
// On Linux it reads /proc and /sys and runs no programs; on other systems it has less. What a machine does not report
// is absent. GPUs are described by internal/host/sample/gpu. Of other programs it reads names and times, not command
// lines.
//
// On a virtual machine, frequencies, caches and temperatures may be missing or wrong.
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

// Folder is a folder that may not exist yet; then its nearest existing ancestor counts.
type Folder struct{ Role, Path string }

// Describe describes the machine as it is now, with the disks of folders. It observes other programs for the given
// time.
func Describe(ctx context.Context, observed time.Duration, folders ...Folder) record.Environment {
	heard := listen(observed)
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
	env.Disks = disks(ctx, folders)
	env.Background = heard(ctx)
	return env
}

// State returns what changes on the machine. On Linux it reads a few small files, so it can be called before every
// launch; on other systems it has only load and memory.
func State(ctx context.Context) record.MachineState {
	s := state(ctx)
	s.Load1 = Load1(ctx)
	return s
}

// Load1 returns the load average over the last minute; 0 if unknown.
func Load1(ctx context.Context) float64 {
	if l, err := load.AvgWithContext(ctx); err == nil {
		return l.Load1
	}
	return 0
}

// CPU returns the processor's name, or its architecture.
func CPU() string { return cmp.Or(processorName(), runtime.GOARCH) }

// display returns the display server for windows.
func display(getenv func(string) string) string {
	switch {
	case getenv("WAYLAND_DISPLAY") != "":
		return "wayland"
	case getenv("DISPLAY") != "":
		return "x11"
	}
	return "none"
}
