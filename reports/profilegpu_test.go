package reports_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// Devices are under the names of memory profiles, each by itself and together.
func TestProfileOfSeveralGPUs(t *testing.T) {
	e := comparetest.Native(2)
	e.Device = record.Device{Class: record.GPU, Name: "Example"}
	run := comparetest.Run(t, "gpu", e)
	for _, a := range run.Attempts {
		for i, s := range []record.Source{{Role: "gpu0", Method: "nvml"}, {Role: "gpu1", Method: "nvml"},
			{Role: "server", Method: "nvml_process", PID: 4000}} {
			a.Sources[90+i] = s
		}
		metric(a, 90, "memory_used_bytes", 1<<30)
		metric(a, 91, "memory_used_bytes", 3<<30)
		metric(a, 92, "gpu_memory_bytes", 2<<30)
		metric(a, 92, "gpu0.gpu_memory_bytes", 1<<30)
		metric(a, 92, "gpu1.gpu_memory_bytes", 1<<30)
	}
	var b bytes.Buffer
	if err := reports.Profile(&b, compare.Runs(run), e.Cell.ID); err != nil {
		t.Fatal(err)
	}
	var p struct {
		GPU struct {
			N       int `json:"num_gpus"`
			Devices []struct {
				Device string
				Peak   float64 `json:"peak_gb"`
			} `json:"gpu_memory_per_device"`
			Several *float64 `json:"multi_gpu_overhead_gb"`
		} `json:"gpu_info"`
		Memory struct {
			Peak struct {
				GPUs struct {
					Sum    float64 `json:"sum_gb"`
					Max    float64 `json:"max_gb"`
					Mean   float64 `json:"mean_gb"`
					StdDev float64 `json:"stddev_gb"`
				} `json:"per_gpu_details"`
			} `json:"peak"`
		} `json:"memory_measurements"`
		Breakdown struct {
			Total  float64           `json:"total_measured_gb"`
			Absent map[string]string `json:"absent"`
		} `json:"memory_breakdown"`
	}
	if err := json.Unmarshal(b.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if p.GPU.N != 2 || len(p.GPU.Devices) != 2 || p.GPU.Devices[1].Device != "gpu1" || p.GPU.Devices[1].Peak != 3 ||
		p.GPU.Several != nil {
		t.Errorf("%+v", p.GPU)
	}
	if d := p.Memory.Peak.GPUs; d.Sum != 4 || d.Max != 3 || d.Mean != 2 || d.StdDev != 1 {
		t.Errorf("%+v", d)
	}
	if p.Breakdown.Total != 2 || p.Breakdown.Absent["multi_gpu_overhead"] == "" {
		t.Errorf("the whole is what the engine's processes hold: %+v", p.Breakdown)
	}
}

// The parts of a divided device have their memory, and are no devices more.
func TestProfileOfADividedGPU(t *testing.T) {
	e := comparetest.Native(1)
	run := comparetest.Run(t, "divided", e)
	for i, role := range []string{"gpu0", "gpu0.mig1", "gpu0.mig2"} {
		for _, a := range run.Attempts {
			a.Sources[90+i] = record.Source{Role: role, Method: "nvml"}
			metric(a, 90+i, "memory_used_bytes", 1<<30)
		}
	}
	var b bytes.Buffer
	var p struct {
		GPU struct {
			N       int   `json:"num_gpus"`
			Devices []any `json:"gpu_memory_per_device"`
		} `json:"gpu_info"`
	}
	if err := reports.Profile(&b, compare.Runs(run), e.Cell.ID); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if p.GPU.N != 1 || len(p.GPU.Devices) != 3 {
		t.Errorf("%+v", p.GPU)
	}
}
