package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

func TestRunMeasuresComparesAndReports(t *testing.T) {
	racedTest(t)
	run := program(t, "run", "--repetitions", "1", "--max-tokens", "12")
	stdout, stderr := well(t, run, "WebLLM", "llama.cpp", "report   results/")
	mentions(t, details(t, run.Dir), "identical: 12 of 12 token ids", "WebGPU ran on the CPU")
	if strings.Contains(stdout+stderr, "\x1b") || !strings.Contains(stderr, "[4/4] llamacpp 1 of 1: ok") {
		t.Errorf("progress that is no terminal's should be plain lines:\n%s", stderr)
	}

	latest := filepath.Join(run.Dir, "results", "latest")
	r := opened(t, latest)
	for _, a := range r.Attempts {
		if len(a.Samples) == 0 || len(a.Totals) == 0 || a.Cost.Reads == 0 {
			t.Errorf("attempt %d was not sampled: %+v", a.ID, a.Cost)
		}
		foreseen(t, r, a)
	}
	if page := readFile(t, filepath.Join(latest, "report.html")); len(page) < 100_000 {
		t.Errorf("report.html: %d bytes", len(page))
	}

	mentions(t, good(t, "report", "--profile", latest), "Profile: ")
	profile := decoded[struct {
		SchemaVersion string `json:"schema_version"`
		Memory        struct {
			Peak struct {
				TotalGB float64 `json:"total_gb"`
			}
		} `json:"memory_measurements"`
	}](t, readFile(t, filepath.Join(latest, "profile-1-webllm.json")))
	if profile.SchemaVersion != "2.0" || profile.Memory.Peak.TotalGB <= 0 {
		t.Errorf("profile: %+v", profile)
	}

	checkExports(t, latest)
	schematest.Valid(t, "result", []byte(good(t, "compare", "--json", latest, latest)))
}

// A run whose launches fail is reported and exits with 1. Its warm-up is tried twice.
func TestFailedLaunchesExitWithOne(t *testing.T) {
	browserTest(t)
	t.Parallel()
	cmd := program(t, "run", "--engines", "webllm", "--repetitions", "1", "--max-tokens", "4", "--chrome-flag",
		"js-flags=--max-old-space-size=5")
	_, stderr := ends(t, cmd, fault.Run, "None of the 3 launches succeeded (oom)", "report   results/")
	mentions(t, lastLine(stderr), "webllm, launch 1", "memory ran out")
	r := recorded(t, cmd.Dir)
	for _, a := range r.Attempts {
		if a.Status != record.Failed || a.Class != record.OOM {
			t.Errorf("launch %d: status %s, class %s", a.ID, a.Status, a.Class)
		}
	}
	if len(r.Attempts) != 3 || r.Status != record.Failed {
		t.Errorf("%d launches, status %s", len(r.Attempts), r.Status)
	}
}
