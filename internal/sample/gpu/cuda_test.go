//go:build gpu && linux && cgo

package gpu

// These tests need a machine with an NVIDIA GPU, its driver, and a C compiler:
//
//	make test-gpu
//
// The GPU must be idle, for what others take meanwhile counts in its figures; and NVML must tell pids as the test sees them, which it
// does not in a container that has pids of its own (docker run --pid=host).

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// allocator is a process that takes memory of a GPU.
type allocator struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	id  string // the GPU's
}

func buildAllocator(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "allocate")
	if out, err := exec.Command("cc", "-Wall", "-Werror", "-o", program, "testdata/allocate.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("the test's program can't be compiled (Debian: apt install gcc libc6-dev): %v\n%s", err, out)
	}
	return program
}

func start(t *testing.T, program string, device int) *allocator {
	t.Helper()
	a := &allocator{cmd: exec.Command(program, strconv.Itoa(device))}
	a.cmd.Env = append(os.Environ(), "CUDA_DEVICE_ORDER=PCI_BUS_ID")
	a.cmd.Stderr = os.Stderr
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		a.in, err = a.cmd.StdinPipe()
	}
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.in.Close() // it ends then
		_ = a.cmd.Wait()
	})
	a.out = bufio.NewScanner(out)
	if !a.out.Scan() {
		t.Fatal("the test's program did not start: this test needs an NVIDIA GPU")
	}
	a.id = a.out.Text()
	return a
}

func (a *allocator) do(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(a.in, format+"\n", args...)
	if !a.out.Scan() || a.out.Text() != "ok" {
		t.Fatalf(format+": %q", append(args, a.out.Text())...)
	}
}

func TestCUDAMemoryIsFoundByDeviceAndByProcess(t *testing.T) {
	m := Open(t.Context(), Options{})
	t.Cleanup(m.Close)
	whole := 0
	for _, g := range m.GPUs() {
		if g.Method == NVML && g.Part == "" {
			whole++
		}
	}
	if whole == 0 {
		t.Fatalf("this test needs an NVIDIA GPU: %+v", m.Warnings())
	}
	program := buildAllocator(t)
	for device := range whole {
		a := start(t, program, device)
		role := ""
		for _, g := range m.GPUs() {
			if g.ID == a.id {
				role = g.Role
			}
		}
		if role == "" {
			t.Fatalf("CUDA's device %s is not among %+v", a.id, m.GPUs())
		}
		p, err := proc.Look(a.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		var of sample.Source
		for _, s := range m.ProcessSources(p.PID, p.Start, "test") {
			if s.Describe().Method == NVMLProcess {
				of = s
			}
		}
		dev := source(t, m.Sources(), role)
		for _, bytes := range []int64{64 * record.MiB, 512 * record.MiB, 2048 * record.MiB} {
			used, held := value(t, dev, "memory_used_bytes"), value(t, of, role+".gpu_memory_bytes")
			a.do(t, "alloc %d", bytes)
			byDevice, byProcess := value(t, dev, "memory_used_bytes")-used, value(t, of, role+".gpu_memory_bytes")-held
			t.Logf("%s: %d MiB taken, %.1f by device, %.1f by process", role, bytes/record.MiB, byDevice/record.MiB, byProcess/record.MiB)
			for what, got := range map[string]float64{"the device": byDevice, "the process": byProcess} {
				if math.Abs(got-float64(bytes)) > 0.01*float64(bytes) {
					t.Errorf("%s: %s grew by %.0f bytes for %d", role, what, got, bytes)
				}
			}
			if sum := value(t, of, "gpu_memory_bytes"); sum != value(t, of, role+".gpu_memory_bytes") {
				t.Errorf("%s: the process holds %.0f in all", role, sum)
			}
		}
		before := value(t, dev, "memory_used_bytes")
		a.do(t, "free")
		if fell := before - value(t, dev, "memory_used_bytes"); math.Abs(fell-2624*record.MiB) > 0.01*2624*record.MiB {
			t.Errorf("%s: %.0f bytes were given back, want 2624 MiB", role, fell)
		}
	}
}

func value(t *testing.T, s sample.Source, name string) float64 {
	t.Helper()
	all := values(t, s)
	v, ok := all[name]
	if !ok {
		t.Fatalf("%s of %s is absent: the driver tells %v (a container has pids of its own)", name, s.Describe().Role, all)
	}
	return v
}
