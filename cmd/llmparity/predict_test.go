package main

import (
	"math"
	"path/filepath"
	"testing"

	"llmparity/browser/webllm"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/tiny"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
	"llmparity/native/logs"
)

// Predictions match the buffer sizes in llama.cpp's log, and assumed settings have the engine's names and values.
func TestPredictionMatchesLlamaCpp(t *testing.T) {
	browserTest(t)
	t.Parallel()
	cmd := program(t, "run", "-q", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "8", "--context",
		"1024", "--llamacpp-ubatch", "128", "--llamacpp-flash-attention", "on", "--llamacpp-cache-type-v", "f16",
		"--no-check-oom")
	well(t, cmd)
	r := recorded(t, cmd.Dir)
	if resolved(t, r.Dir).ChecksOOM() {
		t.Error("the plan doesn't say that nothing is refused")
	}
	p, a := r.Predictions[1], r.Attempts[len(r.Attempts)-1]
	foreseen(t, r, a)
	part, _ := p.Part(estimate.Increase)
	mentions(t, part.Method, "the whole mapped file", "no repacking")
	info, _ := a.Engine()
	for _, name := range []string{"context", "kv_dtype", "weights_dtype", "flash_attention", "mmap", "ubatch",
		"gpu_layers", "repacking"} {
		if p.Setup[name] == "" || p.Setup[name] != info.Policy[name] {
			t.Errorf("%s: %q was taken for granted, the engine says %q", name, p.Setup[name], info.Policy[name])
		}
	}
}

// foreseen compares predicted weights, KV cache and settings with those that an attempt reports.
func foreseen(t *testing.T, r *record.Run, a *record.Attempt) {
	t.Helper()
	p, ok := r.Predictions[a.Cell]
	if !ok || p.Absent != "" || r.Risks[a.Cell].Level != record.RiskLow {
		t.Errorf("cell %d: %+v, %+v", a.Cell, p, r.Risks[a.Cell])
		return
	}
	method := map[string]string{webllm.Name: "webgpu_ledger",
		llamacpp.Name: logs.Method}[r.CellByID(a.Cell).Engine]
	for name, value := range map[string]string{estimate.Weights: "weights_bytes",
		estimate.KVReserved: "kv_reserved_bytes", estimate.KVUsed: "kv_used_bytes"} {
		part, _ := p.Part(name)
		reported := a.AtEdge(record.Measure, method, value)
		if len(reported) != 1 {
			t.Errorf("cell %d, %s: reported %v", a.Cell, value, reported)
		}
		for _, bytes := range reported {
			if math.Abs(float64(part.Best)-bytes) > 0.01*bytes {
				t.Errorf("cell %d, %s: %d bytes predicted, %s says %.0f", a.Cell, name, part.Best, method, bytes)
			}
		}
	}
	info, _ := a.Engine()
	for name, granted := range p.Setup {
		if reported, ok := info.Policy[name]; ok && reported != granted {
			t.Errorf("cell %d, %s: %q was taken for granted, the engine says %q", a.Cell, name, granted, reported)
		}
	}
	if part, ok := p.Part(estimate.Increase); !ok || part.Best <= 0 {
		t.Errorf("cell %d: increase %+v", a.Cell, part)
	}
}

// A cell that fits on no machine is not launched, and its record can be reported.
func TestOutOfMemoryIsRefused(t *testing.T) {
	browserTest(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wide.gguf")
	// 256 GiB of keys and values
	spec := tiny.Spec{Layers: 2, Hidden: 64, Heads: 64, KVHeads: 64, HeadDim: 256, FFN: 64, Vocab: 512,
		Context: 1 << 20}
	check(t, tiny.WriteRandomFile(t.Context(), path, spec))
	cmd := program(t, "run", "--engines", "llamacpp", "--model", path, "--context", "0", "--repetitions", "1")
	_, stderr := ends(t, cmd, fault.WontFit, "llamacpp: prompt 1 skipped: it is predicted to run out of memory")
	mentions(t, lastLine(stderr), "--no-check-oom runs it anyway")
	latest := filepath.Join(cmd.Dir, "results", "latest")
	r := opened(t, latest)
	risk := r.Risks[1]
	if !risk.Refused || risk.Level != record.RiskHigh || len(r.Attempts) != 0 || len(risk.Recommendations) == 0 ||
		risk.Places[0].Name != estimate.RAM {
		t.Errorf("%d attempts, %+v", len(r.Attempts), risk)
	}
	if p := resolved(t, latest); !p.ChecksOOM() {
		t.Error("the plan says that nothing was checked")
	}
	good(t, "report", latest)
}
