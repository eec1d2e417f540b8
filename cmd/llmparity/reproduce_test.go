package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/bench/reproduce"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
)

// reproduced returns the JSON of reproduce.
func reproduced(t *testing.T, args ...string) (r reproduce.Reproduction, code int) {
	t.Helper()
	out, _, code := called(append([]string{"reproduce", "--json"}, args...)...)
	r = decoded[reproduce.Reproduction](t, out)
	schematest.Valid(t, "reproduce", []byte(out))
	if r.ExitCode != code {
		t.Errorf("it says %d and ends with %d", r.ExitCode, code)
	}
	return r, code
}

// changing are the differences that can change figures.
func changing(r reproduce.Reproduction) (out []string) {
	for _, d := range r.Differences {
		if d.Figures {
			out = append(out, d.What)
		}
	}
	return out
}

// A run of this machine has no differences, and its plan runs again. A changed machine or program is named.
func TestReproduceOnSameMachine(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	good(t, "run", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "2", "--quiet", "--out", root)
	dir := filepath.Join(root, "latest")
	r, code := reproduced(t, dir)
	if code != 0 || len(changing(r)) != 0 {
		t.Errorf("exit code %d: %+v", code, r.Differences)
	}
	if !strings.HasSuffix(r.Plan, readFile(t, filepath.Join(dir, "plan.yaml"))) {
		t.Errorf("the plan is not the run's own:\n%s", r.Plan)
	}
	was := opened(t, dir)
	info, _ := was.Attempts[0].Engine()
	mentions(t, r.Plan, was.Meta.Tool.SHA256, was.Cells[0].Model.SHA256, info.SHA256, info.Version)
	if i := slices.IndexFunc(r.Checklist, func(c explain.Check) bool { return c.Item == explain.SameModel }); i < 0 ||
		r.Checklist[i].Answer != explain.Yes {
		t.Errorf("the checklist: %+v", r.Checklist)
	}

	again := filepath.Join(root, "again.yaml")
	out, errs, code := called("reproduce", dir, "--out", again)
	if code != 0 || out != "" || !strings.Contains(errs, "Is the run reproducible?") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	following(t, readFile(t, again))

	machine := readFile(t, filepath.Join(dir, "environment.json"))
	put(t, dir, "environment.json", strings.Replace(machine, `"cpu": "`, `"cpu": "Another `, 1))
	r, code = reproduced(t, dir, "--llama-server", put(t, root, "llama-server", "#!/bin/sh\n"))
	if want := []string{"CPU model", "llamacpp's program"}; code != fault.Run.ExitCode() ||
		!slices.Equal(changing(r), want) {
		t.Errorf("exit code %d, %v differ, want %v", code, changing(r), want)
	}
}

func TestReproduceErrors(t *testing.T) {
	lightTest(t)
	engine := comparetest.Native(1)
	engine.Cell.Setup = 1
	dir := comparetest.Write(t, t.TempDir(), "a", engine)
	fails(t, fault.BadRecord, "this version cannot read the plan", "reproduce", dir)
	put(t, dir, "plan.yaml", "engines: [llamacpp]\nmodel: none.gguf\nprompts: [a]\nmax_tokens: 2\n")
	r, code := reproduced(t, dir)
	if all := changing(r); code != fault.Run.ExitCode() || !slices.Contains(all, "llmparity") ||
		!slices.Contains(all, "model none.gguf, sha256") {
		t.Errorf("exit code %d, %v", code, all)
	}
	fails(t, fault.BadRecord, "not a run folder", "reproduce", t.TempDir())
}
