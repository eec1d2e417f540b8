package machine

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"
)

func TestDescriptionAgreesWithOtherLibraries(t *testing.T) {
	e := Describe(t.Context(), 0, Folder{"results", "none/such/folder"}, Folder{"root", "/"})
	total, err := mem.VirtualMemoryWithContext(t.Context())
	if err != nil || e.MemoryB != int64(total.Total) || e.Memory.AvailableB <= 0 || e.Memory.AvailableB > e.MemoryB {
		t.Errorf("memory %d, %+v; gopsutil says %+v (%v)", e.MemoryB, e.Memory, total, err)
	}
	info, err := cpu.InfoWithContext(t.Context())
	if err != nil || e.CPU == "" || info[0].ModelName != "" &&
		!strings.Contains(e.CPU, strings.TrimSpace(info[0].ModelName)) {
		t.Errorf("CPU %q; gopsutil says %+v (%v)", e.CPU, info, err)
	}
	if name := CPU(); name != e.CPU {
		t.Errorf("its name alone is %q, and in its description %q", name, e.CPU)
	}
	if e.Processor.Logical < 1 || e.Cores != runtime.NumCPU() {
		t.Errorf("%d processors, %d cores", e.Processor.Logical, e.Cores)
	}
	for _, name := range e.Processor.SIMD {
		if flags := info[0].Flags; len(flags) > 0 && !slices.Contains(flags, name) {
			t.Errorf("%s is none of the processor's flags", name)
		}
	}
	if e.Arch != runtime.GOARCH || e.Go != runtime.Version() || e.OS == "" || e.Kernel == "" || e.Background != nil {
		t.Errorf("%+v", e)
	}
	if len(e.Disks) != 2 || e.Disks[0].Role != "results" || e.Disks[0].TotalB <= 0 ||
		e.Disks[0].FreeB > e.Disks[0].TotalB {
		t.Errorf("%+v", e.Disks)
	}
}

func TestDescribeEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := Describe(ctx, time.Hour); e.Background != nil || e.Processor == nil {
		t.Errorf("%+v", e)
	}
}
