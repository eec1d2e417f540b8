package reports_test

import (
	"math"
	"time"

	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// metered are engines beside which GPUs, processors, what processes hold of GPUs, and a server's own words are read.
func metered() []comparetest.Engine {
	a, b := comparetest.Browser(6), comparetest.Native(7)
	wave := func(at time.Duration, around, by float64) float64 { return around + by*math.Sin(7*at.Seconds()) }
	meter := func(role, method string, pid int, every time.Duration,
		read func(p record.Phase, attempt int, at time.Duration) []record.Value) comparetest.Meter {
		return comparetest.Meter{Read: read,
			Source: record.Source{Role: role, Method: method, PID: pid, Every: every, Sees: "what " + method + " sees",
				Blind: "what it doesn't"}}
	}
	gpu := func(role string, size float64) comparetest.Meter {
		return meter(role, "nvml", 0, 100*time.Millisecond,
			func(p record.Phase, attempt int, at time.Duration) []record.Value {
				used := wave(at, size, size/7)
				out := []record.Value{{Name: "memory_free_bytes", Value: wave(at, 2*size, size/9)},
					{Name: "utilization_gpu_percent", Value: math.Round(wave(at, 50, 40))},
					{Name: "temperature_celsius", Value: math.Round(wave(at, 60, 9))}}
				// What two devices held most at is never one moment: the other one doesn't answer then.
				turn := int(at/(100*time.Millisecond)) % 5
				if turn == 0 && role == "gpu0.mig1" || turn == 1 && role == "gpu1" {
					used *= 2
				}
				if !(turn == 1 && role == "gpu0.mig1" || turn == 0 && role == "gpu1") {
					out = append(out, record.Value{Name: "memory_used_bytes", Value: used})
				}
				// The second one's power is not known to the very end of a measurement, and once not at all.
				if role != "gpu0.mig1" && !(role == "gpu1" && (attempt == 3 || p != record.Measure)) {
					out = append(out, record.Value{Name: "power_watts", Value: wave(at, 200, 90)})
				}
				return out
			})
	}
	zone := func(role string) comparetest.Meter {
		return meter(role, "rapl", 0, 50*time.Millisecond,
			func(_ record.Phase, attempt int, at time.Duration) []record.Value {
				if role == "cpu1" && attempt == 5 && at%(200*time.Millisecond) < 100*time.Millisecond {
					// it begins anew
					return []record.Value{{Name: "energy_joules", Value: 0}, {Name: "power_watts", Value: 5}}
				}
				return []record.Value{{Name: "energy_joules", Value: 30*at.Seconds() + math.Sin(at.Seconds())},
					{Name: "power_watts", Value: wave(at, 30, 5)}}
			})
	}
	process := func(role string, pid int, size float64) comparetest.Meter {
		return meter(role, "fdinfo", pid, 100*time.Millisecond,
			func(p record.Phase, _ int, at time.Duration) []record.Value {
				if p == record.Baseline {
					return nil
				}
				return []record.Value{{Name: "gpu_memory_bytes", Value: wave(at, 2*size, size)},
					{Name: "gpu0.gpu_memory_bytes", Value: wave(at, size, size/2)},
					{Name: "gpu1.gpu_memory_bytes", Value: wave(at, size, size/3)},
					{Name: "gpu_system_memory_bytes", Value: size}}
			})
	}
	a.Meters = []comparetest.Meter{gpu("gpu0", 9e9), gpu("gpu0.mig1", 4e9), gpu("gpu1", 7e9),
		process("gpu-process", 4002, 5e8), process("renderer", 4001, 1e7)}
	b.Meters = []comparetest.Meter{zone("cpu0"), zone("cpu1"), gpu("gpu0", 3e9),
		meter("server", "server_metrics", 0, 100*time.Millisecond,
			func(p record.Phase, attempt int, at time.Duration) []record.Value {
				count := math.Floor(20 * at.Seconds())
				if attempt == 9 && p == record.Measure {
					count = 0 // another server
				}
				return []record.Value{{Name: "generated_tokens_count", Value: count},
					{Name: "kv_cache_usage_ratio", Value: wave(at, 0.4, 0.3)}}
			})}
	return []comparetest.Engine{a, b}
}

// onGPU has an engine compute on a GPU.
func onGPU(e comparetest.Engine, id int, engine string, policy map[string]string,
	meters ...comparetest.Meter) comparetest.Engine {
	e.Cell.ID, e.Cell.Engine, e.Info.Name, e.Vary = id, engine, engine, 0.04
	e.Device = record.Device{Class: record.GPU, Name: "CUDA0 (NVIDIA H200)"}
	e.Info.Policy = policy
	e.Meters = append(e.Meters, meters...)
	return e
}

// holds is what a driver reports for a process. It grows with the load, wavers, and is sometimes absent.
func holds(role, method string, pid int, every time.Duration, base, size float64, devices ...string) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: role, Method: method, PID: pid, Start: uint64(90000 + pid),
		Every: every, Sees: "what it holds", Blind: "the rest"},
		Read: func(p record.Phase, attempt int, at time.Duration) []record.Value {
			now := base
			if p != record.Baseline {
				now += size*(1+0.01*float64(attempt%7)) + size/9*math.Sin(5*at.Seconds()+float64(pid))
			}
			if p == record.Load {
				now += size / 4 // copies on the way
			}
			if turn := int(at/every) + pid; now == 0 || turn%11 == 0 {
				return nil // not listed
			}
			bytes := math.Round(now * (1 << 20))
			// the other is not known, so that there is no sum
			if turn := int(at/every) + pid; len(devices) > 1 && turn%7 == 0 {
				return []record.Value{{Name: devices[0] + ".gpu_memory_bytes", Value: 2 * bytes}}
			}
			var out []record.Value
			for _, d := range devices {
				out = append(out, record.Value{Name: d + ".gpu_memory_bytes", Value: bytes / float64(len(devices))})
			}
			return append(out, record.Value{Name: "gpu_memory_bytes", Value: bytes})
		}}
}

// until is a process that ends, and since is one that begins, so long into a run.
func until(m comparetest.Meter, end time.Duration) comparetest.Meter {
	read := m.Read
	m.Read = func(p record.Phase, attempt int, at time.Duration) []record.Value {
		if at%(12*time.Second) > end {
			return nil
		}
		return read(p, attempt, at)
	}
	return m
}

// llamaLog is llama.cpp's log of a model that lies on a GPU, but for what it leaves in the machine's memory.
func llamaLog(method string, detailed bool) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: "server", Method: method, Sees: "sizes",
		Blind: "what is resident"},
		Read: func(p record.Phase, attempt int, _ time.Duration) []record.Value {
			if p == record.Baseline || p == record.Unload {
				return nil
			}
			mib := func(name string, v float64) record.Value {
				return record.Value{Name: name, Value: math.Round(v * (1 << 20))}
			}
			out := []record.Value{mib("weights_bytes", 120), mib("kv_reserved_bytes", 8), mib("compute_bytes", 33),
				mib("output_bytes", 0.19), mib("workspaces_bytes", 33.19),
				{Name: "kv_cells_count", Value: 512}}
			if detailed {
				out = append(out, mib("weights.CUDA0_bytes", 100), mib("weights.CPU_Mapped_bytes", 20),
					mib("kv_reserved.CUDA0_bytes", 8), mib("compute.CUDA0_bytes", 30),
					mib("compute.CUDA_Host_bytes", 3), mib("output.CUDA_Host_bytes", 0.19))
			}
			if p != record.Load {
				out = append(out, mib("kv_used_bytes", 1+float64(attempt)/64))
			}
			return out
		}}
}

// apiPS is what Ollama says of a model's size.
func apiPS(size, vram float64) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: "server", Method: "api_ps", Waits: true, Sees: "its estimate",
		Blind: "what is taken"},
		Read: func(p record.Phase, _ int, _ time.Duration) []record.Value {
			if p == record.Baseline || p == record.Unload {
				return nil
			}
			return []record.Value{{Name: "size_bytes", Value: size}, {Name: "size_vram_bytes", Value: vram}}
		}}
}

const quarter = 250 * time.Millisecond

// onGPUs are engines whose weights and KV cache lie on GPUs, each in another way.
func onGPUs(launches int) []comparetest.Engine {
	policy := func(layers string) map[string]string {
		return map[string]string{"weights_dtype": "f32", "kv_dtype": "f16", "context": "512", "mmap": "on",
			"gpu_layers": layers, "ubatch": "512"}
	}
	part, native := comparetest.Predict, comparetest.Native(launches)
	llama := onGPU(native, 11, "llamacpp", policy("33 of 33"), llamaLog("engine_log", true),
		holds("server", "nvml_process", 4000, quarter, 0, 640, "gpu0"))
	llama.Prediction = &record.Prediction{Source: "gguf", Setup: map[string]string{"context": "512"},
		Parts: []record.Predicted{part(figure.ModelWeights, 118, 118, 118, "f32"),
			part(figure.KVCache, 8, 8, 8, "f16"), part(figure.Activations, 5, 10, 20, "f32"),
			part(figure.FrameworkOverhead, 10, 20, 30, ""),
			part(figure.MemoryIncrease, 200, 230, 260, ""), part(figure.TotalMemory, 200, 240, 280, "")}}
	some := onGPU(native, 12, "llamacpp", policy("10 of 33"), llamaLog("engine_log", true),
		holds("server", "nvml_process", 4000, quarter, 0, 70, "gpu0"))
	page := onGPU(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 13, "webllm",
		map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": "256"},
		holds("gpu-process", "nvml_process", 4002, quarter, 50, 90, "gpu0"),
		holds("gpu-process", "drm_fdinfo", 4002, 2*quarter, 40, 110, "gpu0"),
		holds("renderer", "drm_fdinfo", 4001, 2*quarter, 0, 3, "gpu0"),
		until(holds("utility", "nvml_process", 4003, quarter, 300, 0, "gpu0"), 3*time.Second))
	page.Prediction = &record.Prediction{Source: "webllm-package",
		Parts: []record.Predicted{part(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
			part(figure.KVCacheUsed, 0.06, 0.06, 0.07, "f32"), part(figure.MultiGPUOverhead, 0, 0, 0, ""),
			part(figure.MemoryIncrease, 60, 90, 130, "")}}
	served := comparetest.Served(launches)
	served.Cell.Model.WeightsB, served.Cell.Model.Parameters = 0, 0
	vllm := onGPU(served, 14, "vllm", map[string]string{"kv_dtype": "fp8_e4m3"},
		holds("server", "nvml_process", 4000, quarter, 0, 500, "gpu0"),
		holds("worker", "nvml_process", 5001, quarter, 0, 9000, "gpu0", "gpu1"),
		holds("worker", "nvml_process", 5002, quarter, 0, 9100, "gpu1"))
	ollama := onGPU(native, 15, "ollama",
		map[string]string{"weights_dtype": "q8_0", "kv_dtype": "not told", "context": "2048"}, apiPS(5e8, 5e8),
		llamaLog("engine_log", false),
		holds("runner", "nvml_process", 4100, quarter, 0, 400, "gpu0.mig0"))
	half := onGPU(native, 17, "ollama-half", ollama.Info.Policy, apiPS(5e8, 3e8), llamaLog("engine_log", false),
		holds("runner", "nvml_process", 4100, quarter, 0, 200, "gpu0"))
	half.Device.Detail = map[string]string{"size_bytes": "500000000", "size_vram_bytes": "300000000"}
	ollama.Device.Detail = map[string]string{"size_bytes": "500000000", "size_vram_bytes": "500000000"}
	hidden := onGPU(native, 16, "exec", map[string]string{"weights_dtype": "f32", "kv_dtype": "bfloat16"})
	hidden.Cell.Model.DType = "q4_0"
	unseen := onGPU(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 18, "webllm",
		page.Info.Policy)
	return []comparetest.Engine{llama, some, page, vllm, ollama, hidden, half, unseen}
}
