//go:build linux && cgo

package gpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// asChild makes the test binary read what NVML there is, print it, and end. A program can load one only.
const asChild = "GPU_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	if err := tell(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// reported is what a child has read: values by role or method.
type reported struct {
	GPUs     []record.GPUInfo
	Warnings []record.Warning
	Values   map[string]map[string]float64
}

func tell() error {
	ctx := context.Background()
	m := Open(ctx, Options{})
	defer m.Close()
	out := reported{GPUs: m.GPUs(), Warnings: m.Warnings(), Values: map[string]map[string]float64{}}
	start, err := startOf(os.Getpid())
	if err != nil {
		return err
	}
	for _, s := range append(m.Sources(), m.ProcessSources(os.Getpid(), start, NVMLProcess)...) {
		if err := keep(ctx, s, out.Values); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func keep(ctx context.Context, s sample.Source, to map[string]map[string]float64) error {
	d := s.Describe()
	if d.Method != NVML && d.Method != NVMLProcess {
		return nil // this machine may have others
	}
	to[d.Role] = map[string]float64{}
	r := record.NewSample()
	if err := s.Read(ctx, &r); err != nil {
		return fmt.Errorf("%s: %w", d.Role, err)
	}
	for _, v := range r.Values {
		to[d.Role][v.Name] = v.Value
	}
	return nil
}

// The loader finds a real library here, called through cgo.
func TestNVMLThroughC(t *testing.T) {
	const gib = float64(gib)
	// its memory on the other GPU is unknown, so there is no total
	process := map[string]float64{"gpu0.gpu_memory_bytes": 0.75 * gib}
	for flag, want := range map[string]map[string]map[string]float64{
		"-DNEW": {
			"gpu0": {"memory_used_bytes": gib, "memory_free_bytes": 14.5 * gib, "memory_total_bytes": 16 * gib,
				"memory_reserved_bytes":   0.5 * gib,
				"utilization_gpu_percent": 60, "utilization_memory_percent": 30, "power_watts": 70.5,
				"temperature_celsius": 41, "energy_joules": 0},
			"gpu1": {"memory_used_bytes": 2 * gib, "memory_free_bytes": 13.5 * gib, "memory_total_bytes": 16 * gib,
				"memory_reserved_bytes":   0.5 * gib,
				"utilization_gpu_percent": 61, "utilization_memory_percent": 30, "temperature_celsius": 41,
				"energy_joules": 0},
			NVMLProcess: process,
		},
		"-DOLD": {
			"gpu0": {"memory_used_bytes": 2 * gib, "memory_free_bytes": 14 * gib, "memory_total_bytes": 16 * gib,
				"utilization_gpu_percent": 60, "utilization_memory_percent": 30, "power_watts": 70.5,
				"temperature_celsius": 41},
			"gpu1": {"memory_used_bytes": 3 * gib, "memory_free_bytes": 13 * gib, "memory_total_bytes": 16 * gib,
				"utilization_gpu_percent": 61, "utilization_memory_percent": 30, "temperature_celsius": 41},
			NVMLProcess: process,
		},
	} {
		t.Run(flag, func(t *testing.T) {
			dir := t.TempDir()
			build := exec.Command("cc", "-Wall", "-Werror", "-shared", "-fPIC", flag, "-o",
				filepath.Join(dir, "libnvidia-ml.so.1"), "testdata/nvml.c")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("the test's library can't be compiled (Debian: apt install gcc libc6-dev): %v\n%s", err, out)
			}
			// The library reports the pid of its caller, which the shell keeps on exec.
			cmd := exec.Command("sh", "-c", `GPU_TEST_PID=$$ exec "$0"`, os.Args[0])
			cmd.Env = append(os.Environ(), asChild+"="+strconv.Itoa(os.Getpid()), "LD_LIBRARY_PATH="+dir)
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got reported
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if !reflect.DeepEqual(got.Values, want) {
				t.Errorf("got %v\nwant %v", got.Values, want)
			}
			if len(got.GPUs) < 2 || got.GPUs[1].Name != "Test GPU 1" || got.GPUs[1].Driver != "999.1" ||
				got.GPUs[1].ID != "GPU-1" || got.GPUs[1].MemoryB != 16<<30 {
				t.Errorf("%+v", got.GPUs)
			}
		})
	}
}
