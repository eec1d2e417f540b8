//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

const turnsPlan = "name: turns\nengines: [llamacpp]\nmodel: tiny\nprompts: [the quick]\nmax_tokens: 16\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 4\ntimeout: 3m\nparity: false\n"

// Both sides alternate, are interrupted and resumed together, and are gated.
func TestRunAgainstAlternatesAndResumes(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--repetitions", "6", "--against", "other.yaml --threads 2",
		"--inconclusive", "warn")
	for _, name := range []string{"plan.yaml", "other.yaml"} {
		put(t, cmd.Dir, name, turnsPlan)
	}
	var stderr child.Tail
	stderr.Max = 1 << 16
	cmd.Stderr = &stderr
	check(t, cmd.Start())
	latest := filepath.Join(cmd.Dir, "results", "latest")
	waitFor(t, "a launch of each side", func() bool {
		text, _ := os.ReadFile(filepath.Join(latest, "journal.jsonl")) // not there yet: not yet
		return strings.Contains(string(text), `"end"`)
	})
	check(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // its exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != fault.Interrupted.ExitCode() {
		t.Fatalf("exit code %d\n%s", code, strings.Join(stderr.Lines(20), "\n"))
	}
	if left := child.Tagged(cmd.Process.Pid); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	resume := resumed(cmd, "run", "--resume", "results/latest", "--inconclusive", "warn")
	stdout, said, code := output(t, resume)
	if code != 0 && code != fault.Gate.ExitCode() { // what differs is real: a thread more
		t.Fatalf("exit code %d\n%s%s", code, stdout, said)
	}
	mentions(t, strings.Join(strings.Fields(stdout), " "), "launches of both runs took turns",
		"decode_tps", "peak_pss_mb",
		"ttft_ms")
	now := opened(t, latest)
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
	again := resumed(cmd, "gate", "results/latest", "--format", "json", "--inconclusive", "warn")
	if stdout, said, _ := output(t, again); !strings.Contains(stdout, `"interleaved": true`) {
		t.Errorf("%s%s", stdout, said)
	}
	// Without a gate in the plan, --baseline compares too.
	one := resumed(cmd, "run", "plan.yaml", "--repetitions", "1", "--baseline", "results/latest")
	if stdout, said, code := output(t, one); code != fault.Inconclusive.ExitCode() ||
		!strings.Contains(stdout, "default tolerances: decode_tps -5%") {
		t.Errorf("exit code %d\n%s%s", code, stdout, said)
	}
}
