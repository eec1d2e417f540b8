package logs_test

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// newLoads strips time and level from lines.
func newLoads() *logs.Loads {
	prefix := regexp.MustCompile(`^\d+(\.\d+)+ ([A-Z]) `)
	return logs.NewLoads(4096, func(line string) string { return prefix.ReplaceAllString(line, "") })
}

func TestVectorsAreTheWidestThatTheKernelsWereBuiltFor(t *testing.T) {
	for line, want := range map[string]int{
		"system_info: n_threads = 1 (n_threads_batch = 1) / 2 | CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 | AVX512 = 1 | OPENMP = 1 | ": 512,
		"common_param: system_info: n_threads = 1 / 2 | CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | ":             256,
		"system_info: n_threads = 1 / 2 | CUDA : ARCHS = 900 | CPU : SSE3 = 1 | SSSE3 = 1 | LLAMAFILE = 1 | ":                      128,
		"system_info: n_threads = 8 / 8 | CPU : AVX = 0 | AVX2 = 0 | NEON = 1 | ARM_FMA = 1 | ":                                    128,
		"system_info: n_threads = 8 / 8 | CPU : NEON = 1 | SVE = 1 | SVE_CNT = 32 | ":                                              256,
		"system_info: n_threads = 8 / 8 | CPU : OPENMP = 1 | ":                                                                     0,
		"load_tensors: CPU : AVX512 = 1": 0,
	} {
		r := newLoads()
		_, _ = r.Write([]byte(line + "\n")) // it never fails
		if got := r.Said().Vector; got != want {
			t.Errorf("%d bits, want %d: %s", got, want, line)
		}
	}
}

func TestLogs(t *testing.T) {
	const mib = record.MiB
	for _, c := range []struct {
		name                     string
		weights, kv, compute     float64 // MiB, as printed
		output                   float64
		cells, context, ubatch   int
		flash                    string
		used                     float64 // of 100 tokens
		backends, offloadedLayer string
	}{
		{"smollm2-f32.log", 92.10, 45, 27.51, 0.19, 1024, 1024, 512, "disabled", 45.0 * 100 / 1024, "CPU_Mapped", "0"},
		{"smollm2-q8_0-flash.log", 92.10, 23.91, 16.67, 0.19, 2048, 2048, 512, "enabled", 23.91 * 100 / 2048,
			"CPU_Mapped", "0"},
		{"smollm2-f16-auto-fit.log", 92.10, 22.5, 15.64, 0.19, 1024, 1024, 512, "enabled", 22.5 * 100 / 1024,
			"CPU_Mapped", "0"},
		{"tiny-f32.log", 1.63, 1, 11.76, 0, 1024, 1024, 512, "disabled", 1.0 * 100 / 1024, "CPU_Mapped", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newLoads()
			_, _ = r.Write(check.Read(t, filepath.Join("testdata", "loads", c.name))) // it never fails
			l := r.Said()
			v := l.Values(100)
			for name, want := range map[string]float64{
				"weights_bytes": c.weights * mib, "weights." + c.backends + "_bytes": c.weights * mib,
				"kv_reserved_bytes": c.kv * mib,
				"compute_bytes":     c.compute * mib, "output_bytes": c.output * mib,
				"workspaces_bytes": (c.compute + c.output) * mib,
				"kv_cells_count":   float64(c.cells), "kv_used_bytes": c.used * mib,
			} {
				if math.Abs(v[name]-want) > 2 {
					t.Errorf("%s is %.0f, want %.0f", name, v[name], want)
				}
			}
			if l.Context != c.context || l.UBatch != c.ubatch || l.Flash != c.flash ||
				l.LayersText(0) != c.offloadedLayer {
				t.Errorf("context %d, ubatch %d, flash attention %q, layers %s", l.Context, l.UBatch, l.Flash,
					l.LayersText(0))
			}
			if _, known := l.Values(-1)["kv_used_bytes"]; known {
				t.Error("kv_used_bytes is set without a number of tokens")
			}
		})
	}
}

// Output of other versions and backends, according to llama.cpp's sources.
func TestLogLinesOfOtherVersions(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"the first set is a trial", `load_tensors:   CPU_Mapped model buffer size =    10.00 MiB
llama_kv_cache:        CPU KV buffer size =    9.00 MiB
llama_kv_cache: size =    9.00 MiB (   256 cells,   1 layers,  1/1 seqs), K (f32):    4.50 MiB, V (f32):    4.50 MiB
sched_reserve:        CPU compute buffer size =    8.00 MiB
load_tensors:   CPU_Mapped model buffer size =    10.00 MiB
llama_kv_cache:        CPU KV buffer size =    4.00 MiB
llama_kv_cache: size =    4.00 MiB (   256 cells,   1 layers,  1/1 seqs), K (f32):    2.00 MiB, V (f32):    2.00 MiB
sched_reserve:        CPU compute buffer size =    7.00 MiB
`, "weights 10 kv 4 compute 7 used 4 layers 0"},
		{"several backends, a sliding window, a reallocated reserve", `load_tensors: offloaded 29/33 layers to GPU
load_tensors:        CUDA0 model buffer size =   100.00 MiB
load_tensors:   CPU_Mapped model buffer size =    20.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    6.00 MiB
llama_kv_cache: size =    6.00 MiB (   512 cells,   3 layers,  1/1 seqs), K (f16):    3.00 MiB, V (f16):    3.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    2.00 MiB
llama_kv_cache: size =    2.00 MiB (   128 cells,   3 layers,  1/1 seqs), K (f16):    1.00 MiB, V (f16):    1.00 MiB
sched_reserve:      CUDA0 compute buffer size =    50.00 MiB
sched_reserve:  CUDA_Host compute buffer size =    3.00 MiB
sched_reserve:      CUDA0 compute buffer size =    30.00 MiB
`, "weights 120 kv 8 compute 33 used 5 layers 29 of 33"},
		{"older names", `llm_load_tensors:        CPU buffer size =    12.00 MiB
llama_kv_cache_init:        CPU KV buffer size =    16.00 MiB
llama_new_context_with_model: KV self size  =   16.00 MiB, K (f16):    8.00 MiB, V (f16):    8.00 MiB
llama_new_context_with_model:        CPU  output buffer size =     1.00 MiB
llama_new_context_with_model:        CPU compute buffer size =    5.00 MiB
`, "weights 12 kv 16 compute 5 used - layers 0"},
		{"no numbers", `load_tensors:   CPU_Mapped model buffer size =    ..... MiB
llama_kv_cache: size =    . MiB (   99999999999999999999 cells,   1 layers
`, "weights - kv - compute - used - layers 0"},
	} {
		r := newLoads()
		_, _ = r.Write([]byte(c.log)) // it never fails
		l := r.Said()
		v := l.Values(256)
		show := func(name string) string {
			b, ok := v[name]
			if !ok {
				return "-"
			}
			return fmt.Sprint(b / record.MiB)
		}
		got := fmt.Sprintf("weights %s kv %s compute %s used %s layers %s", show("weights_bytes"),
			show("kv_reserved_bytes"), show("compute_bytes"),
			show("kv_used_bytes"), l.LayersText(0))
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A second load's devices come before its first buffer.
func TestDevicesOfTheSecondLoad(t *testing.T) {
	r := newLoads()
	one := `llama_model_load_from_file_impl: using device CUDA0 (NVIDIA H200) (0000:01:00.0) - 143000 MiB free
load_tensors: offloaded 3/3 layers to GPU
load_tensors:        CUDA0 model buffer size =   100.00 MiB
sched_reserve:      CUDA0 compute buffer size =    50.00 MiB
`
	_, _ = r.Write([]byte(one + one)) // never fails
	if l := r.Said(); len(l.Devices) != 1 || l.Devices[0] != "CUDA0 (NVIDIA H200)" ||
		l.Values(0)["weights_bytes"] != 100*record.MiB {
		t.Errorf("%+v", l)
	}
}

func TestLines(t *testing.T) {
	const text = "one\n\nthree is longer\r\nfour\nfive"
	want := []string{"one", "", "three is", "four"}
	for size := range len(text) {
		var got []string
		l := logs.Lines{Max: 8, Take: func(line string) { got = append(got, line) }}
		for part := range slices.Chunk([]byte(text), size+1) {
			if n, err := l.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes at a time: %q, want %q", size+1, got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for line, want := range map[string]record.Class{
		"CUDA error: out of memory":                                       record.OOM,
		"terminate called after throwing an instance of 'std::bad_alloc'": record.OOM, "MemoryError": record.OOM,
		"ggml_aligned_malloc: insufficient memory (attempted to allocate 9 MB) failed to allocate": record.OOM,
		"Cannot allocate memory": record.OOM,
		"model requires more system memory (9 GiB) than is available": record.OOM, "Segmentation fault": record.Crash,
		"": record.Crash,
	} {
		if got := logs.ClassOf("loading", line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
