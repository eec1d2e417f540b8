//go:build !race

package reports_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"llmparity/compare"
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

func TestWhatIsToldIsThatOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", metered()...))
	if a, b := res.Cells[0], res.Cells[1]; len(a.Hardware) != 7 || len(b.Hardware) != 4 || len(a.Reported) < 3 ||
		len(b.Server) != 2 {
		t.Errorf("of GPUs %d and %d, reported %d, of a server %d", len(a.Hardware), len(b.Hardware), len(a.Reported),
			len(b.Server))
	}
	reused := metered()[1]
	reused.Reused, reused.Cell.Reused = true, true
	reportAgain(t, comparetest.Write(t, t.TempDir(), "reused", reused))
}

func TestWhatIsToldWronglyIsFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", metered()...), compare.Defaults())
	figure := func(list []compare.Figure, name string) *compare.Figure {
		i := slices.IndexFunc(list, func(f compare.Figure) bool { return f.Name == name && f.Known() })
		if i < 0 {
			t.Fatalf("there is no %s", name)
		}
		return &list[i]
	}
	of := func(r *compare.Result, cell int, role, name string) *compare.Figure {
		all := r.Cells[cell].Hardware
		return figure(all[slices.IndexFunc(all, func(h compare.Hardware) bool { return h.Role == role })].Figures, name)
	}
	more := func(v *float64) { *v *= 1.00001 }
	for says, change := range map[string]func(*compare.Result){
		"reported decode_tokens_per_s, median": func(
			r *compare.Result) {
			more(figure(r.Cells[0].Reported, "decode_tokens_per_s").Median)
		},
		"reported predicted_n, launch": func(
			r *compare.Result) {
			figure(r.Cells[1].Reported, "predicted_n").Values[3].Value++
		},
		"server's generated_tokens_count, upper end": func(
			r *compare.Result) {
			figure(r.Cells[1].Server, "generated_tokens_count").Interval.Hi++
		},
		"server's kv_cache_usage_ratio, median": func(
			r *compare.Result) {
			more(figure(r.Cells[1].Server, "kv_cache_usage_ratio").Median)
		},
		"gpu gpu0 by nvml memory_free_at_begin, launch": func(
			r *compare.Result) {
			more(&of(r, 0, "gpu0", compare.GPUFree).Values[0].Value)
		},
		"gpu gpu1 by nvml memory_used_peak, median": func(
			r *compare.Result) {
			more(of(r, 0, "gpu1", compare.GPUPeak).Median)
		},
		"gpu gpu0 by nvml utilization_stddev, median": func(
			r *compare.Result) {
			more(of(r, 0, "gpu0", compare.GPUBusyDev).Median)
		},
		"gpu gpu1 by nvml energy, launch": func(
			r *compare.Result) {
			more(&of(r, 0, "gpu1", compare.Energy).Values[0].Value)
		},
		"gpus gpus by nvml memory_used_sum, median": func(
			r *compare.Result) {
			more(of(r, 0, "gpus", compare.GPUSum).Median)
		},
		"gpus gpus by nvml memory_used_stddev, median": func(
			r *compare.Result) {
			more(of(r, 0, "gpus", compare.GPUDeviation).Median)
		},
		"gpus gpus by nvml power_mean, median": func(
			r *compare.Result) {
			more(of(r, 0, "gpus", compare.GPUPower).Median)
		},
		"process processes by fdinfo gpu_memory_peak": func(
			r *compare.Result) {
			more(of(r, 0, "processes", compare.GPUHeld).Median)
		},
		"renderer by fdinfo gpu1.gpu_memory_peak, median": func(
			r *compare.Result) {
			more(of(r, 0, "renderer", "gpu1.gpu_memory_peak").Median)
		},
		"processor cpu0 by rapl power_max, median": func(
			r *compare.Result) {
			more(of(r, 1, "cpu0", compare.GPUPowerMax).Median)
		},
		"processors cpus by rapl energy_per_token, n": func(
			r *compare.Result) {
			of(r, 1, "cpus", compare.EnergyPerToken).N--
		},
		"has nothing of processors cpus by rapl": func(r *compare.Result) {
			r.Cells[1].Hardware = slices.DeleteFunc(r.Cells[1].Hardware,
				func(h compare.Hardware) bool { return h.Role == "cpus" })
		},
		"the report has no predicted_n": func(
			r *compare.Result) {
			figure(r.Cells[1].Reported, "predicted_n").Name = "other"
		},
	} {
		folder.finds(t, says, change, false)
	}
}
