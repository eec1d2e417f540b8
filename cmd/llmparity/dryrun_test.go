package main

import (
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/bench/dryrun"
)

// wouldRun is what a dry run prints as JSON.
type wouldRun struct {
	Planned []struct {
		Engine, Missing, Unknown string
		MemoryB                  int64 `json:"memory_bytes"`
	} `json:"cells_planned"`
	dryrun.Summary
}

// Before the first launch, a run says that one takes minutes on a software adapter, and names a limit that suffices.
func TestSlowLaunchIsAnnounced(t *testing.T) {
	lightTest(t)
	if !browser.Auto.Software() {
		t.Skip("WebGPU has a GPU here")
	}
	t.Chdir(t.TempDir())
	run := func(args ...string) string {
		return good(t, append([]string{"run", "--engines", "webllm", "--dry-run", "--concurrency", "1"}, args...)...)
	}
	mentions(t, run("--requests", "2000", "--timeout", "2m"), "webllm: WebGPU runs on the CPU. With 1.6 MiB of weights and ",
		" min (predicted); the time limit is 2m: use --timeout ")
	if out := run("--requests", "2"); strings.Contains(out, "WebGPU runs on the CPU. With") {
		t.Errorf("a short launch is announced:\n%s", out)
	}
}
