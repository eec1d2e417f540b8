//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
)

const turnsPlan = "name: turns\nengines: [llamacpp]\nmodel: tiny\nprompts: [the quick]\nmax_tokens: 16\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 4\ntimeout: 3m\nparity: false\n"

// Both sides alternate, are interrupted and resumed together, and are gated.
func TestRunAgainstAlternatesAndResumes(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--repetitions", "6", "--against", "other.yaml --threads 2", "--aa",
		"--inconclusive", "warn")
	for _, name := range []string{"plan.yaml", "other.yaml"} {
		put(t, cmd.Dir, name, turnsPlan)
	}
	signalled(t, cmd, syscall.SIGINT, "a launch of each side", func() bool { return journal(cmd, `"end"`) })
	sides, _ := runfolder.SidesOf(filepath.Join(cmd.Dir, "results", "latest"))
	if sides.Noise == "" {
		t.Fatalf("sides %+v", sides)
	}
	resume := resumed(cmd, "run", "--resume", sides.Baseline, "--inconclusive", "warn") // any side stands for all
	stdout, said, code := output(t, resume)
	if code != 0 && code != fault.Gate.ExitCode() { // what differs is real: a thread more
		t.Fatalf("exit code %d\n%s%s", code, stdout, said)
	}
	mentions(t, stdout, "default threads", "2 threads", "noise", "16 of 16 identical")
	now := recorded(t, cmd.Dir)
	base := opened(t, filepath.Join(cmd.Dir, "results", now.Meta.Against))
	for _, of := range []struct {
		side string
		run  *record.Run
	}{{"1", now}, {"2", base}, {"2", opened(t, sides.Noise)}} {
		side, run := of.side, of.run
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
	for _, dir := range []string{"results/latest", sides.Baseline} {
		stdout, _, _ = output(t, resumed(cmd, "gate", dir, "--format", "json", "--inconclusive", "warn"))
		mentions(t, stdout, `"interleaved": true`, `"name": "default threads"`, `"name": "2 threads"`)
		stdout, _, code = output(t, resumed(cmd, "report", dir, "--details"))
		if mentions(t, stdout, "default threads compared with 2 threads"); code != 0 {
			t.Errorf("report %s: exit code %d", dir, code)
		}
	}
	// Without a gate in the plan, --baseline compares too.
	ends(t, resumed(cmd, "run", "plan.yaml", "--repetitions", "1", "--baseline", "results/latest"), fault.Inconclusive,
		"default tolerances: decode_tps -5%")
}
