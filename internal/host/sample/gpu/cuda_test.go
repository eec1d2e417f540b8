//go:build gpu && linux && cgo

package gpu

// These tests need a machine with an NVIDIA GPU, its driver (libcuda.so.1, libnvidia-ml.so.1) and a C compiler; no part
// of CUDA's toolkit:
//
//	make test-gpu
//
// The GPU must be idle, for what others take meanwhile counts in its figures. The test by process needs NVML to tell
// numbers of processes as the test sees them, which it does not in a container that has numbers of its own (docker run
// --pid=host); where so it fails, and says so.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// sizes are taken one after the other. The driver takes memory in steps of 2 MiB, which is within 1 % of the smallest.
func sizes() []int64 { return []int64{256 * record.MiB, 1024 * record.MiB, 2048 * record.MiB} }

// allocator is a process that takes memory of a GPU.
type allocator struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func buildAllocator(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "allocate")
	if out, err := exec.Command("cc", "-Wall", "-Werror", "-o", program, "testdata/allocate.c",
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("the test's program can't be compiled (Debian: apt install gcc libc6-dev): %v\n%s", err, out)
	}
	return program
}

// start starts a program that takes memory of the GPU, or part of one, with that id of NVML's, which is CUDA's too.
func start(t *testing.T, program, id string) *allocator {
	t.Helper()
	// a watchdog: it hangs where the driver does
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	a := &allocator{cmd: exec.CommandContext(ctx, program)}
	a.cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+id)
	a.cmd.Stderr = os.Stderr
	a.in, a.out = proctest.Start(t, a.cmd)
	if !a.out.Scan() {
		t.Fatalf("the test's program can't use %s; what it says is above: CUDA_ERROR_NO_DEVICE where the GPU is another's, or compute mode forbids it", id)
	}
	return a
}

func (a *allocator) do(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(a.in, format+"\n", args...)
	if !a.out.Scan() || a.out.Text() != "ok" {
		t.Fatalf("%s: it answers %q", fmt.Sprintf(format, args...), a.out.Text())
	}
}

// eachGPU runs a test for every NVIDIA GPU, or for the parts of those that are divided.
func eachGPU(t *testing.T, test func(t *testing.T, m *Monitor, g record.GPUInfo, a *allocator)) {
	m := Open(t.Context(), Options{})
	t.Cleanup(m.Close)
	gpus := slices.DeleteFunc(slices.Clone(m.GPUs), func(g record.GPUInfo) bool {
		return g.Method != NVML || slices.ContainsFunc(
			m.GPUs, func(part record.GPUInfo) bool { return strings.HasPrefix(part.Role, g.Role+".") })
	})
	if len(gpus) == 0 {
		t.Fatalf("this test needs an NVIDIA GPU with its driver: %s %+v", m.None, m.Warnings)
	}
	program := buildAllocator(t)
	for _, g := range gpus {
		t.Run(g.Role, func(t *testing.T) {
			var need int64
			for _, n := range sizes() {
				need += n
			}
			free := value(t, source(t, m.Sources(), g.Role), "memory_free_bytes")
			t.Logf("%s: %s (%s), driver %s, %.0f MiB free", g.Role, g.Name, g.ID, g.Driver, free/record.MiB)
			if free < 1.2*float64(need) {
				t.Fatalf("%s has %.0f MiB free, and the test takes %d: end what uses it", g.Role, free/record.MiB,
					need/record.MiB)
			}
			test(t, m, g, start(t, program, g.ID))
		})
	}
}

// grows takes memory step by step, and looks for it in a value, to which it may take a moment to get there; then for
// all that is given back.
func grows(t *testing.T, s sample.Source, name string, a *allocator) {
	t.Helper()
	value(t, s, name) // the first of a source may be another's, of a moment before
	begin := value(t, s, name)
	all := int64(0)
	for _, n := range sizes() {
		before := value(t, s, name)
		a.do(t, "alloc %d", n)
		got := settled(t, s, name, before, n)
		t.Logf("%d MiB taken: %s grew by %.2f MiB (%+.3f %%)", n/record.MiB, name, got/record.MiB,
			100*(got/float64(n)-1))
		if !near(got, n) {
			t.Errorf("%s grew by %.0f bytes for %d: more than 1 %% off (is anything else using the GPU?)", name, got, n)
		}
		all += n
	}
	if whole := value(t, s, name) - begin; !near(whole, all) {
		t.Errorf("%s grew by %.0f bytes in all, for %d", name, whole, all)
	}
	before := value(t, s, name)
	a.do(t, "free")
	if fell := settled(t, s, name, before, -all); !near(fell, -all) {
		t.Errorf("%s changed by %.0f bytes as %d were given back", name, fell, all)
	}
}

func near(got float64, want int64) bool {
	return math.Abs(got-float64(want)) <= 0.01*math.Abs(float64(want))
}

// settled is by how much a value has changed, as soon as that is what it should be; else after a while.
func settled(t *testing.T, s sample.Source, name string, before float64, want int64) float64 {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if got := value(t, s, name) - before; near(got, want) || time.Now().After(end) {
			return got
		}
	}
}

func TestCUDAMemoryByDevice(t *testing.T) {
	eachGPU(t, func(t *testing.T, m *Monitor, g record.GPUInfo, a *allocator) {
		grows(t, source(t, m.Sources(), g.Role), "memory_used_bytes", a)
	})
}

func TestCUDAMemoryByProcess(t *testing.T) {
	eachGPU(t, func(t *testing.T, m *Monitor, g record.GPUInfo, a *allocator) {
		p, err := proc.Look(a.cmd.Process.Pid)
		check.Err(t, err)
		var of sample.Source
		for _, s := range m.ProcessSources(p.PID, p.Start, "test") {
			if s.Describe().Method == NVMLProcess {
				of = s
			}
		}
		name := g.Role + ".gpu_memory_bytes"
		if _, listed := values(t, of)[name]; !listed {
			t.Fatalf("NVML does not list process %d on %s; run the test where pids are the machine's (docker run --pid=host)",
				p.PID, g.Role)
		}
		grows(t, of, name, a)
		if sum, held := value(t, of, "gpu_memory_bytes"), value(t, of, name); sum != held {
			t.Errorf("the process holds %.0f in all, and %.0f of the one GPU that it uses", sum, held)
		}
	})
}

func value(t *testing.T, s sample.Source, name string) float64 {
	t.Helper()
	all := values(t, s)
	v, ok := all[name]
	if !ok {
		t.Fatalf("%s of %s is absent, the driver reports %v", name, s.Describe().Role, all)
	}
	return v
}
