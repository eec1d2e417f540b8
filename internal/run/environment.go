package run

import (
	"context"
	"os"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"

	"llmparity/internal/record"
)

// Environment describes the machine as it is now. What the system doesn't tell is left out.
func Environment(ctx context.Context) record.Environment {
	env := record.Environment{OS: runtime.GOOS, Cores: runtime.NumCPU(), Load1: load1(ctx)}
	if h, err := host.InfoWithContext(ctx); err == nil {
		env.OS = strings.TrimSpace(h.Platform + " " + h.PlatformVersion)
		env.Kernel = h.KernelVersion
		env.Container = h.VirtualizationRole == "guest" && h.VirtualizationSystem == "docker"
	}
	if c, err := cpu.InfoWithContext(ctx); err == nil && len(c) > 0 {
		env.CPU = c[0].ModelName
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		env.MemoryB = int64(m.Total)
	}
	if g, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); err == nil {
		env.Governor = strings.TrimSpace(string(g))
	}
	return env
}

// load1 is the load average over the last minute; 0 where the system keeps none.
func load1(ctx context.Context) float64 {
	if l, err := load.AvgWithContext(ctx); err == nil {
		return l.Load1
	}
	return 0
}
