package main

import (
	"path/filepath"
	"testing"

	"llmparity/internal/record"
)

func TestLlamaCppAndOllamaFromEndToEnd(t *testing.T) {
	browserTest(t)
	t.Parallel()
	// After the default prompt no two tokens are so close that an f16 KV cache could turn them.
	cmd := program(t, "run", "--engines", "llamacpp,ollama", "--max-tokens", "8", "--repetitions", "1")
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "llama.cpp and Ollama: identical text")
	latest := filepath.Join(cmd.Dir, "results", "latest")
	if p := resolved(t, latest); p.Sections["ollama"]["kv_type"] != "f16" || p.Threads != 1 {
		t.Errorf("the plan that was run: %+v", p)
	}
	p := executed(t, latest)["ollama"].Policy
	if p["threads"] != "1" || p["kv_dtype"] != "f16" || p["context"] != "1024" ||
		p["mmap"] != "off" {
		t.Errorf("its policy: %v", p)
	}
	r := opened(t, latest)
	for _, a := range r.Attempts {
		if r.CellByID(a.Cell).Engine != "ollama" {
			continue
		}
		roles := map[string]bool{}
		for _, s := range a.Sources {
			roles[s.Role+" "+s.Method] = true
		}
		_, baseline := a.Phase(record.Baseline)
		if !baseline || !roles["server statm"] || !roles["runner smaps_rollup"] || !roles["server api_ps"] ||
			!roles["runner engine_log"] || len(a.Stages) != 2 {
			t.Errorf("attempt %d: a baseline: %v, sources %v, stages %v", a.ID, baseline, roles, a.Stages)
		}
	}
}
