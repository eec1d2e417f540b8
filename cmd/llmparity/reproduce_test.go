package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/reproduce"
	"llmparity/internal/schematest"
)

// reproduced returns the JSON of reproduce.
func reproduced(t *testing.T, args ...string) (r reproduce.Reproduction, code int) {
	t.Helper()
	out, errs, code := called(append([]string{"reproduce", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
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
	root := t.TempDir()
	if out, errs, code := called("run", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "2", "--quiet",
		"--out", root); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	dir := filepath.Join(root, "latest")
	r, code := reproduced(t, dir)
	if code != 0 || len(changing(r)) != 0 {
		t.Errorf("exit code %d: %+v", code, r.Differences)
	}
	planned, err := os.ReadFile(filepath.Join(dir, "plan.yaml"))
	if err != nil || !strings.HasSuffix(r.Plan, string(planned)) {
		t.Errorf("%v: the plan is not the run's own:\n%s", err, r.Plan)
	}
	was := opened(t, dir)
	info, _ := was.Attempts[0].Engine()
	for _, sum := range []string{was.Meta.Tool.SHA256, was.Cells[0].Model.SHA256, info.SHA256, info.Version} {
		if sum == "" || !strings.Contains(r.Plan, sum) {
			t.Errorf("%q is not in the plan", sum)
		}
	}
	if i := slices.IndexFunc(r.Checklist, func(c explain.Check) bool { return c.Item == explain.SameModel }); i < 0 ||
		r.Checklist[i].Answer != explain.Yes {
		t.Errorf("the checklist: %+v", r.Checklist)
	}

	again := filepath.Join(root, "again.yaml")
	out, errs, code := called("reproduce", dir, "--out", again)
	if code != 0 || out != "" || !strings.Contains(errs, "Is the run reproducible?") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	text := readFile(t, again)
	if _, err := plan.Parse([]byte(text), again, kinds.All...); err != nil {
		t.Error(err)
	}

	other := filepath.Join(root, "llama-server")
	check(t, os.WriteFile(other, []byte("#!/bin/sh\n"), 0o755))
	env := filepath.Join(dir, "environment.json")
	machine := readFile(t, env)
	check(t, os.WriteFile(env, []byte(strings.Replace(machine, `"cpu": "`, `"cpu": "Another `, 1)),
		0o644))
	r, code = reproduced(t, dir, "--llama-server", other)
	if want := []string{"processor", "llamacpp " + info.Version + ", sha256"}; code != fault.Run.ExitCode() ||
		!slices.Equal(changing(r), want) {
		t.Errorf("exit code %d, %v differ, want %v", code, changing(r), want)
	}
}

func TestReproduceErrors(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "a", comparetest.Native(1))
	if _, errs, code := called("reproduce", dir); code != fault.BadRecord.ExitCode() ||
		!strings.Contains(errs, "this version cannot read the plan") {
		t.Errorf("of a plan that says nothing: exit code %d, %s", code, errs)
	}
	check(t, os.WriteFile(filepath.Join(dir, "plan.yaml"),
		[]byte("engines: [llamacpp]\nmodel: none.gguf\nprompts: [a]\nmax_tokens: 2\n"), 0o644))
	r, code := reproduced(t, dir)
	if all := changing(r); code != fault.Run.ExitCode() || !slices.Contains(all, "llmparity") ||
		!slices.Contains(all, "model none.gguf, sha256") {
		t.Errorf("exit code %d, %v", code, all)
	}
	if _, errs, code := called("reproduce", t.TempDir()); code != fault.BadRecord.ExitCode() ||
		!strings.Contains(errs, "not a run folder") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
