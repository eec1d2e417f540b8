package reports_test

import (
	"math"
	"time"

	"llmparity/compare/comparetest"
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
