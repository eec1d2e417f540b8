package main

import (
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// A run whose launches fail is reported and exits with 1. Its warm-up is tried twice.
func TestFailedLaunchesExitWithOne(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--engines", "webllm", "--repetitions", "1", "--max-tokens", "4", "--chrome-flag",
		"js-flags=--max-old-space-size=5")
	stdout, stderr, code := output(t, cmd)
	if code != fault.Run.ExitCode() {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	mentions(t, stdout, "None of the 3 launches succeeded (oom)", "report   results/")
	if line := lastLine(stderr); !strings.Contains(line, "webllm, launch 1") ||
		!strings.Contains(line, "memory ran out") {
		t.Errorf("the last line is %q", line)
	}
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
