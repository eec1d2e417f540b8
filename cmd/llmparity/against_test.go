//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

const turnsPlan = "name: turns\nengines: [llamacpp]\nmodel: tiny\nprompts: [the quick]\nmax_tokens: 16\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 4\ntimeout: 3m\nparity: false\n"

// Both sides alternate, are interrupted and resumed together, and are gated.
func TestRunAgainstAlternatesAndResumes(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--repetitions", "6", "--against", "other.yaml --threads 2",
		"--inconclusive", "warn")
	for _, name := range []string{"plan.yaml", "other.yaml"} {
		put(t, cmd.Dir, name, turnsPlan)
	}
	signalled(t, cmd, syscall.SIGINT, "a launch of each side", func() bool { return journal(cmd, `"end"`) })
	resume := resumed(cmd, "run", "--resume", "results/latest", "--inconclusive", "warn")
	stdout, said, code := output(t, resume)
	if code != 0 && code != fault.Gate.ExitCode() { // what differs is real: a thread more
		t.Fatalf("exit code %d\n%s%s", code, stdout, said)
	}
	mentions(t, stdout, "launches of both runs alternated", "decode_tps", "peak_pss_mb", "ttft_ms")
	now := recorded(t, cmd.Dir)
	base := opened(t, filepath.Join(cmd.Dir, "results", now.Meta.Against))
	for side, run := range map[string]*record.Run{"1": now, "2": base} {
		counted, threads := 0, ""
		for _, a := range run.Attempts {
			if info, reported := a.Engine(); a.Counted() && reported {
				counted++
				threads = info.Policy["threads"]
			}
		}
		if run.Status != record.OK || counted != 6 || threads != side {
			t.Errorf("threads %s: %s, %d launches with %s", side, run.Status, counted, threads)
		}
		if !there(filepath.Join(run.Dir, "report.html")) {
			t.Errorf("%s has no report", run.Dir)
		}
	}
	stdout, _, _ = output(t, resumed(cmd, "gate", "results/latest", "--format", "json", "--inconclusive", "warn"))
	mentions(t, stdout, `"interleaved": true`)
	// Without a gate in the plan, --baseline compares too.
	ends(t, resumed(cmd, "run", "plan.yaml", "--repetitions", "1", "--baseline", "results/latest"), fault.Inconclusive,
		"default tolerances: decode_tps -5%")
}
