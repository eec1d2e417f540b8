package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
)

// exampleEngine builds the example of an exec: engine.
func exampleEngine(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if out, err := exec.Command("go", "build", "-o", path, "../../examples/engine").CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	return path
}

func TestExecEngineIsComparedTokenByToken(t *testing.T) {
	t.Parallel()
	own := "exec:mine=" + exampleEngine(t)
	cmd := program(t, "run", "--engines", "llamacpp", "--engine", own, "--max-tokens", "12", "--repetitions", "1",
		"--parity", "--reference", own)
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "llama.cpp and exec:mine: identical: 12 of 12 token ids")
	latest := filepath.Join(cmd.Dir, "results", "latest")
	if p := resolved(t, latest); !slices.Equal(p.Engines, []string{"llamacpp", own}) {
		t.Errorf("the plan that was run: %+v", p)
	}
	if page, err := os.ReadFile(filepath.Join(latest, "report.html")); err != nil ||
		!strings.Contains(string(page), "exec:mine") {
		t.Errorf("report.html: %d bytes, %v", len(page), err)
	}
	r := opened(t, latest)
	for _, a := range r.Attempts {
		if c := r.Cells[slices.IndexFunc(
			r.Cells, func(c record.Cell) bool { return c.ID == a.Cell })]; c.Engine != "exec:mine" {
			continue
		}
		_, baseline := a.Phase(record.Baseline)
		if len(a.Samples) == 0 || !baseline || len(a.Stages) != 2 {
			t.Errorf("attempt %d: %d samples, a baseline: %v, stages %v", a.ID, len(a.Samples), baseline, a.Stages)
		}
	}
	// That it tells ids, and so can be the reference, it says itself.
	if len(r.Scorings) != 2 || r.CellByID(r.Scorings[0].Scoring.Reference).Engine != "exec:mine" ||
		len(r.Scorings[0].Scores) != 12 {
		t.Errorf("scored: %+v; warnings %v", r.Scorings, r.Warnings)
	}
	if p := policies(t, latest)["exec:mine"]; p["threads"] != "1" || p["context"] != "1024" {
		t.Errorf("its policy: %v", p)
	}
}

// Workers of an exec: engine end even if the run is killed.
func TestWorkersOfExecEngineEndWithRun(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "-q", "--engine", "exec:./echo.py", "--max-tokens", "900", "--repetitions", "1")
	workers := strings.Replace(documentsPython(t), "import json, sys, time\n",
		"import json, subprocess, sys, time\n\nsubprocess.Popen(['sleep', '600'], stdin=subprocess.DEVNULL)\n", 1)
	put(t, cmd.Dir, "echo.py", workers)
	check(t, cmd.Start())
	latest := filepath.Join(cmd.Dir, "results", "latest")
	waitFor(t, "a model to be loaded", func() bool {
		text, _ := os.ReadFile(filepath.Join(latest, "journal.jsonl")) // not there yet: not yet
		return strings.Contains(string(text), `"name":"load"`)
	})
	there := child.Tagged(cmd.Process.Pid)
	sleeps := slices.ContainsFunc(there, func(pid int) bool { return slices.Contains(proc.CommandLine(pid), "600") })
	if err := cmd.Process.Kill(); err != nil || !sleeps {
		t.Fatalf("of %v one sleeps: %v; %v", there, sleeps, err)
	}
	_ = cmd.Wait() // killed, as it should be
	waitFor(t, "every process to end", func() bool { return len(child.Tagged(cmd.Process.Pid)) == 0 })
}

// An exec: engine may serve models by name.
func TestExecEngineServesItsOwnModel(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "-q", "--engine", "exec:./echo.py", "--model", "served:parrot", "--max-tokens",
		"8", "--repetitions", "1")
	files := documentsPython(t)
	serves := strings.NewReplacer(`policy=`, `formats=["served"], policy=`, `r["model"]["path"]`, `r["model"]["name"]`,
		`r["model"]["context"]`, `r["model"].get("context", 512)`).Replace(files)
	put(t, cmd.Dir, "echo.py", serves)
	stdout, stderr, code := output(t, cmd)
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "exec:echo.py on parrot") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if r, err := record.Open(filepath.Join(cmd.Dir, "results", "latest")); err != nil ||
		r.Cells[0].Model.Name != "parrot" || r.Cells[0].Model.Format != "served" {
		t.Errorf("%+v, %v", r, err)
	}
	cmd = program(t, cmd.Args[1:]...)
	put(t, cmd.Dir, "echo.py", files)
	stdout, stderr, code = output(t, cmd)
	if want := "exec:echo.py runs models in the format gguf, but parrot is served"; code != fault.BadModel.ExitCode() ||
		!strings.Contains(stderr, want) {
		t.Errorf("exit code %d, want %s with %q:\n%s%s", code, fault.BadModel, want, stdout, stderr)
	}
}

// documentsPython returns the Python engine of docs/howto/add-an-engine.md.
func documentsPython(t *testing.T) string {
	t.Helper()
	text := readFile(t, "../../docs/howto/add-an-engine.md")
	python := regexp.MustCompile("(?s)\n```python\n(.*?)\n```\n").FindStringSubmatch(text)
	if python == nil {
		t.Fatal("docs/howto/add-an-engine.md has no engine in Python")
	}
	return python[1]
}

// The end of a run says why an engine was refused, and so does the report.
func TestRunEndsWithTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--engines", "llamacpp", "--engine", "exec:./babble.py", "--max-tokens", "4",
		"--repetitions", "1")
	check(t, os.WriteFile(filepath.Join(cmd.Dir, "babble.py"), []byte("#!/bin/sh\n"), 0o600))
	stdout, _, code := output(t, cmd)
	if code != fault.NoProgram.ExitCode() {
		t.Errorf("exit code %d", code)
	}
	for _, text := range []string{stdout, details(t, cmd.Dir), good(t, "report", filepath.Join(cmd.Dir, "results",
		"latest"), "--format", "markdown")} {
		mentions(t, strings.Join(strings.Fields(text), " "),
			"1 of 2 cells was refused: it cannot run here: exec:babble.py: ./babble.py cannot be run: permission denied;")
	}
}
