//go:build slow

package deepen

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/bench/once"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// BenchmarkSampling compares the speed of llama-server's decode with and without samples of its stacks, in alternating
// pairs. Samples may cost 3% of it. Of a few generations the fastest counts, because other load can only slow one down.
// The server's time on CPUs has less noise than the clock, and includes the kernel's work for samples.
func BenchmarkSampling(b *testing.B) {
	const pairs, best = 20, 3
	path, err := models.Path(models.SmolLM2)
	check.Err(b, err)
	m, err := models.Open(b.Context(), path, 512)
	check.Err(b, err)
	s, err := once.Open(b.Context(), llamacpp.New(llamacpp.Config{Cache: cache.Dir(os.Getenv)}), m, io.Discard, false)
	check.Err(b, err)
	defer s.Close()
	decode := func(sampled bool) (wall, cpu float64) {
		if sampled {
			perf, err := sampling(b.Context(), s.Probe.PIDs)
			check.Err(b, err)
			defer os.RemoveAll(perf.dir)
			defer func() {
				perf.end()
				if info, err := os.Stat(filepath.Join(perf.dir, "data")); err != nil || info.Size() < 1<<20 {
					b.Errorf("perf wrote no samples: %v", err)
				}
			}()
		}
		for i := range best {
			before := onCPU(b, s.Probe.PIDs)
			took, err := plain(b.Context(), s, engine.Request{Prompt: "Once upon a time", MaxTokens: 64,
				IgnoreEOS: true})
			check.Err(b, err)
			used := onCPU(b, s.Probe.PIDs) - before
			if i == 0 {
				wall, cpu = took[record.Decode].Seconds(), used
			}
			wall, cpu = min(wall, took[record.Decode].Seconds()), min(cpu, used)
		}
		return wall, cpu
	}
	decode(false) // warm
	var walls, cpus []float64
	for i := range pairs {
		var wall, cpu [2]float64 // without, with
		for turn := range 2 {
			at := (i + turn) % 2 // by turns first
			wall[at], cpu[at] = decode(at == 1)
		}
		b.Logf("pair %d: without samples %.3f s, with them %.3f s; of CPU time %.3f and %.3f s", i+1, wall[0], wall[1],
			cpu[0], cpu[1])
		walls, cpus = append(walls, wall[0]/wall[1]), append(cpus, cpu[0]/cpu[1])
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	cpu, speed := summary(b, "of-cpu-speed", cpus), summary(b, "of-speed", walls)
	switch {
	case cpu.Hi < 0.97, speed.Hi < 0.97:
		b.Error("samples cost more than 3%")
	case cpu.Lo < 0.97:
		b.Error("the machine is too busy with other things: the interval is wide")
	}
}

func summary(b *testing.B, name string, ratios []float64) benchmath.Summary {
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), 0.95)
	b.ReportMetric(s.Center, name)
	b.Logf("%s: %.4f (95%% CI %.4f to %.4f)", name, s.Center, s.Lo, s.Hi)
	return s
}

// onCPU is the time that processes have had on CPUs, in seconds.
func onCPU(b *testing.B, pids []int) (sum float64) {
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		check.Err(b, err)
		for _, path := range threads {
			var ns float64
			_, err := fmt.Sscan(string(check.Read(b, path)), &ns)
			check.Err(b, err)
			sum += ns / 1e9
		}
	}
	return sum
}
