package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// A run whose launches fail ends, is reported, and exits with 1: the record has the classes. Its warm-up is made twice.
func TestARunWithFailedLaunchesIsReportedAndExitsWithOne(t *testing.T) {
	cmd := program(t, "run", "--engines", "webllm", "--repetitions", "2", "--max-tokens", "4", "--chrome-flag",
		"js-flags=--max-old-space-size=5")
	stdout, stderr, code := output(t, cmd)
	if code != fault.Run.ExitCode() {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{"None of the 4 launches succeeded (oom)", "Report: results/"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if line := lastLine(stderr); !strings.Contains(line, "webllm, launch 1") ||
		!strings.Contains(line, "memory ran out") {
		t.Errorf("the last line is %q", line)
	}
	r, err := record.Open(filepath.Join(cmd.Dir, "results", "latest"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Attempts {
		if a.Status != record.Failed || a.Class != record.OOM {
			t.Errorf("launch %d: status %s, class %s", a.ID, a.Status, a.Class)
		}
	}
	if len(r.Attempts) != 4 || r.Status != record.Failed {
		t.Errorf("%d launches, status %s", len(r.Attempts), r.Status)
	}
}
