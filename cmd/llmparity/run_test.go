package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunMeasuresComparesAndReports(t *testing.T) {
	run := program(t, "run", "--repetitions", "1", "--max-tokens", "12")
	stdout, stderr := well(t, run)
	mentions(t, stdout, "WebLLM", "llama.cpp", "report   results/")
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
	}
	for _, a := range r.Attempts {
		foreseen(t, r, a)
	}
	page, err := os.ReadFile(filepath.Join(latest, "report.html"))
	if err != nil || len(page) < 100_000 {
		t.Errorf("report.html: %d bytes, %v", len(page), err)
	}

	again := program(t, "report", "--profile", latest)
	if out, stderr, code := output(t, again); code != 0 || !strings.Contains(out, "Profile: ") {
		t.Errorf("report: exit code %d\n%s%s", code, out, stderr)
	}
	var profile struct {
		SchemaVersion string `json:"schema_version"`
		Memory        struct {
			Peak struct {
				TotalGB float64 `json:"total_gb"`
			} `json:"peak"`
		} `json:"memory_measurements"`
	}
	check(t, json.Unmarshal([]byte(readFile(t, filepath.Join(latest, "profile-1-webllm.json"))), &profile))
	if profile.SchemaVersion != "2.0" || profile.Memory.Peak.TotalGB <= 0 {
		t.Errorf("profile: %+v", profile)
	}

	checkExports(t, latest)
	both := program(t, "compare", "--json", latest, latest)
	out, stderr, code := output(t, both)
	if code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("compare --json: exit code %d, %s\n%.300s", code, stderr, out)
	}
}
