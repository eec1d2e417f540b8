package main

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"llmparity/internal/child"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
)

func TestLlamaCppAndOllamaFromEndToEnd(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--engines", "llamacpp,ollama", "--max-tokens", "8", "--repetitions", "1", "--prompt",
		"The third clock had stopped.")
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "llama.cpp and Ollama: identical text")
	latest := filepath.Join(cmd.Dir, "results", "latest")
	if p := resolved(t, latest); p.Sections["ollama"]["kv_type"] != "f16" || p.Threads != 1 {
		t.Errorf("the plan that was run: %+v", p)
	}
	if p := policies(t, latest)["ollama"]; p["threads"] != "1" || p["kv_dtype"] != "f16" || p["context"] != "1024" ||
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
		for _, kv := range a.AtEdge(record.Load, "engine_log", "kv_reserved_bytes") {
			if kv != 512<<10 {
				t.Errorf("attempt %d: a KV cache of %g bytes", a.ID, kv)
			}
		}
		if len(a.AtEdge(record.Load, "api_ps", "size_bytes")) != 1 {
			t.Errorf("attempt %d: what /api/ps says is not recorded", a.ID)
		}
	}
}

// Ollama's runner would outlive its server.
func TestKillLeavesNoRunner(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--engines", "ollama", "--repetitions", "50")
	check(t, cmd.Start())
	waitFor(t, "a runner", func() bool {
		return slices.ContainsFunc(child.Tagged(cmd.Process.Pid),
			func(pid int) bool { return slices.Contains(proc.CommandLine(pid), "runner") })
	})
	check(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // killed, as it should be
	waitFor(t, "every process to end", func() bool { return len(child.Tagged(cmd.Process.Pid)) == 0 })
	if _, err := os.Stat(filepath.Join(cmd.Dir, "results", "latest", "journal.jsonl")); err != nil {
		t.Error(err)
	}
}
