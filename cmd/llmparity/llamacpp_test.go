package main

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// Both programs of llama.cpp use the user's settings, generate the same text, and report buffer sizes in their logs.
func TestLlamaCppProgramsInOneRun(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "-q", "--engines", "llamacpp,llamacpp-oneshot", "--repetitions", "1", "--max-tokens", "48",
		"--llamacpp-cache-type-k", "q8_0",
		"--llamacpp-cache-type-v", "q8_0", "--llamacpp-flash-attention", "on", "--llamacpp-batch", "64",
		"--llamacpp-mmap", "off")
	well(t, cmd)
	dir := filepath.Join(cmd.Dir, "results", "latest")
	p := resolved(t, dir)
	if l := p.Sections["llamacpp"]; l["batch"] != 64 || l["cache_type_k"] != "q8_0" || l["flash_attention"] != "on" ||
		l["mmap"] != "off" || l["batch_threads"] != 1 {
		t.Errorf("the plan that was run: %+v", p.Sections["llamacpp"])
	}
	for name, engine := range executed(t, dir) {
		policy := engine.Policy
		if policy["kv_dtype"] != "q8_0" || policy["flash_attention"] != "on" || policy["batch"] != "64" ||
			policy["mmap"] != "off" {
			t.Errorf("%s: %v", name, policy)
		}
	}
	mentions(t, details(t, cmd.Dir), "identical text")
	for _, c := range compare.Runs(opened(t, dir)).Cells {
		for _, name := range []string{figure.Weights, figure.KVReserved, figure.KVUsed, figure.Workspaces} {
			if f := evidence.Find(c.Memory.Measure, name); !f.Known() || f.Method != evidence.EngineLog ||
				f.Blind == "" {
				t.Errorf("%s of %s: %+v", name, c.Label, f)
			}
		}
		if f := c.Figure(figure.PeakPSS); !f.Known() {
			t.Errorf("%s: no peak: %+v", c.Label, f)
		}
	}
}

// llamaServer is the llama-server of the set-up.
func llamaServer(t *testing.T) string {
	t.Helper()
	path, err := llamacpp.Find(llamacpp.Config{Cache: cache.Dir(os.Getenv)})
	check(t, err)
	return path
}

// onGPU wraps llama-server so that it reports a GPU, and with offloads, that layers are on it.
func onGPU(t *testing.T, offloads bool) string {
	t.Helper()
	text := "#!/bin/sh\n[ \"$1\" != --list-devices ] || { echo 'Available devices:'; echo '  CUDA0: A GPU (9 MiB)'; exit 0; }\n"
	if offloads {
		text += "[ \"$1\" != -m ] || echo 'load: using device CUDA0 (A GPU) - 9 MiB free\nload_tensors: offloaded 2/2 layers to GPU\nload_tensors: CUDA0 model buffer size = 1.00 MiB'\nfor a; do shift; case $a in -ngl) skip=1; continue ;; esac; [ -n \"$skip\" ] || set -- \"$@\" \"$a\"; skip=; done\n"
	}
	return put(t, t.TempDir(), "llama-server", text+"exec "+llamaServer(t)+" \"$@\"\n")
}

func TestLayersOnGPU(t *testing.T) {
	lightTest(t)
	t.Parallel()
	run := []string{"run", "-q", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "4",
		"--llamacpp-gpu-layers", "2", "--llama-server"}
	cmd := program(t, append(run, onGPU(t, true))...)
	well(t, cmd)
	r := recorded(t, cmd.Dir)
	if d := compare.Runs(r).Cells[0].Device; d == nil || d.Class != record.GPU || d.Name != "CUDA0 (A GPU)" ||
		d.Detail["gpu_layers"] != "2 of 2" {
		t.Errorf("device %+v", d)
	}
	cmd = program(t, append(run, onGPU(t, false))...)
	ends(t, cmd, fault.Fallback, "the plan asks for gpu, but the engine runs on cpu")
	if d, ok := recorded(t, cmd.Dir).Attempts[0].Device(); !ok || d.Asked != "gpu" || d.Class != record.CPU {
		t.Errorf("the record of a launch without layers on a GPU: %+v", d)
	}
	well(t, program(t, append(run, onGPU(t, false), "--allow-fallback")...))
}
