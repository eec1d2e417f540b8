package memory

import (
	"math"
	"testing"
	"time"

	"llmparity/compare/hardware"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// onGPU has two processes on a GPU: one from the start, with 100 MiB, and one that loads 2,000 MiB, uses 300 more in
// the warm-up and 50 more in a request.
func onGPU() *record.Attempt {
	a := &record.Attempt{ID: 1, Status: record.OK, EndNS: int64(5 * time.Second), Sources: map[int]record.Source{
		1: {Role: "server", Method: "nvml_process", PID: 10, Every: 250 * time.Millisecond},
		2: {Role: "worker", Method: "nvml_process", PID: 11, Every: 250 * time.Millisecond},
		3: {Role: "gpu0", Method: "nvml", Every: 250 * time.Millisecond}}}
	for i, p := range []record.Phase{record.Baseline, record.Load, record.Warmup, record.Measure} {
		a.Phases = append(a.Phases, record.PhaseSpan{Name: p, BeginNS: int64(i) * int64(time.Second),
			EndNS: int64(i+1) * int64(time.Second)})
	}
	push := func(seconds float64, source int, name string, mebibytes float64) {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: source, NS: int64(seconds * 1e9), Name: name,
			Value: mebibytes * record.MiB})
	}
	for at := 0.125; at < 5; at += 0.25 {
		push(at, 1, hardware.HeldBytes, 100)
		push(at, 3, "memory_used_bytes", 9000) // of other programs, too
		switch {
		case at < 1:
		case at < 2:
			push(at, 2, hardware.HeldBytes, 2000)
		case at > 3.2 && at < 3.5:
			push(at, 2, hardware.HeldBytes, 2350)
		default:
			push(at, 2, hardware.HeldBytes, 2300)
		}
	}
	return a
}

func TestVRAMHasThreePoints(t *testing.T) {
	want := map[string]float64{figure.PeakVRAM: 2450, figure.VRAMIncrease: 2350, figure.BaselineVRAM: 100,
		figure.PostWarmupVRAM: 2400}
	for _, f := range VRAM([]*record.Attempt{onGPU()}) {
		if got := f.Value(1); math.Abs(got-want[f.Name]) > 1e-9 {
			t.Errorf("%s is %v, want %v", f.Name, got, want[f.Name])
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// A device whose processes no driver lists says nothing of an engine.
func TestVRAMNeedsProcesses(t *testing.T) {
	a := onGPU()
	delete(a.Sources, 1)
	delete(a.Sources, 2)
	if got := VRAM([]*record.Attempt{a}); got != nil {
		t.Errorf("%+v", got)
	}
}
