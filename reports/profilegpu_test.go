package reports_test

import (
	"io"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// Devices are under the names of memory profiles, each by itself and together; the parts of a divided one have their
// memory, and are no devices more.
func TestProfileOfGPUs(t *testing.T) {
	for name, roles := range map[string][]string{"several": {"gpu0", "gpu1"},
		"divided": {"gpu0", "gpu0.mig1", "gpu0.mig2"}} {
		e := comparetest.Native(2)
		e.Device = record.Device{Class: record.GPU, Name: "Example"}
		run := comparetest.Run(t, "gpu", e)
		for _, a := range run.Attempts {
			for i, role := range roles {
				a.Sources[90+i] = record.Source{Role: role, Method: "nvml"}
				metric(a, 90+i, "memory_used_bytes", float64(1+2*i)*(1<<30))
			}
			a.Sources[99] = record.Source{Role: "server", Method: "nvml_process", PID: 4000}
			metric(a, 99, "gpu_memory_bytes", 2<<30)
			metric(a, 99, "gpu0.gpu_memory_bytes", 1<<30)
			metric(a, 99, "gpu1.gpu_memory_bytes", 1<<30)
		}
		golden(t, "profile-gpus-"+name+".json",
			func(w io.Writer) error { return reports.Profile(w, compare.Runs(run), e.Cell.ID) })
	}
}
