//go:build !linux

package machine

import (
	"context"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"

	"llmparity/internal/record"
)

// Stolen is only known on Linux.
func Stolen() *float64 { return nil }

// describe fills in what portable system calls report.
func describe(ctx context.Context, env *record.Environment) {
	p := &record.Processor{}
	if c, err := cpu.InfoWithContext(ctx); err == nil && len(c) > 0 {
		env.CPU = strings.TrimSpace(c[0].ModelName)
		p.Vendor, p.Microcode, p.MHz = c[0].VendorID, c[0].Microcode, c[0].Mhz
		flags := map[string]bool{}
		for _, f := range c[0].Flags {
			flags[strings.ReplaceAll(strings.ToLower(f), ".", "_")] = true
		}
		p.SIMD = cpuInfo{flags: flags}.simd()
	}
	if n, err := cpu.CountsWithContext(ctx, true); err == nil {
		p.Logical = n
	}
	if n, err := cpu.CountsWithContext(ctx, false); err == nil {
		p.Physical = n
	}
	p.Caches = systemCaches()
	env.Processor = p
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		env.MemoryB, env.Memory = int64(m.Total), &record.Memory{AvailableB: int64(m.Available)}
		if s, err := mem.SwapMemoryWithContext(ctx); err == nil {
			env.Memory.SwapB, env.Memory.SwapFreeB = int64(s.Total), int64(s.Free)
		}
	}
}

func state(ctx context.Context) (s record.MachineState) {
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		s.FreeB, s.AvailableB = int64(m.Free), int64(m.Available)
	}
	if m, err := mem.SwapMemoryWithContext(ctx); err == nil {
		s.SwapUsedB = int64(m.Used)
	}
	return s
}

func processorName() string {
	c, err := cpu.Info()
	if err != nil || len(c) == 0 {
		return ""
	}
	return strings.TrimSpace(c[0].ModelName)
}

// listen observes nothing here.
func listen(time.Duration) func(context.Context) *record.Background {
	return func(context.Context) *record.Background { return nil }
}

// Room returns the available memory and where that figure comes from; ok is false if it is unknown.
func Room(ctx context.Context) (free int64, how string, ok bool) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil || m.Available == 0 {
		return 0, "", false
	}
	return int64(m.Available), "available, as the system estimates", true
}
