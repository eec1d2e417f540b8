package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/record"
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
	racedTest(t)
	t.Parallel()
	own := "exec:mine=" + exampleEngine(t)
	cmd := program(t, "run", "--engines", "llamacpp", "--engine", own, "--max-tokens", "12", "--repetitions", "1",
		"--parity", "--text-of", own)
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "llama.cpp and exec:mine: identical: 12 of 12 token ids")
	latest := filepath.Join(cmd.Dir, "results", "latest")
	if p := resolved(t, latest); !slices.Equal(p.Engines, []string{"llamacpp", own}) {
		t.Errorf("the plan that was run: %+v", p)
	}
	mentions(t, readFile(t, filepath.Join(latest, "report.html")), "exec:mine")
	r := opened(t, latest)
	for _, a := range r.Attempts {
		if r.CellByID(a.Cell).Engine != "exec:mine" {
			continue
		}
		_, baseline := a.Phase(record.Baseline)
		if len(a.Samples) == 0 || !baseline || len(a.Stages) != 2 {
			t.Errorf("attempt %d: %d samples, a baseline: %v, stages %v", a.ID, len(a.Samples), baseline, a.Stages)
		}
	}
	// That it tells ids, and so can be the reference, it says itself.
	asked := slices.DeleteFunc(r.Scorings, func(a *record.Attempt) bool { return a.Scoring.Checks() })
	if len(asked) != 2 || r.CellByID(asked[0].Scoring.Reference).Engine != "exec:mine" || len(asked[0].Scores) != 12 {
		t.Errorf("scored: %+v; warnings %v", asked, r.Warnings)
	}
	if p := executed(t, latest)["exec:mine"].Policy; p["threads"] != "1" || p["context"] != "1024" {
		t.Errorf("its policy: %v", p)
	}
}

// Files that a plan names for engines are one model if they have the same weights, in whatever container.
func TestFormsWithTheSameWeightsAreOneModel(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "plan.yaml")
	in := filepath.Join(cmd.Dir, "in.gguf")
	check(t, tiny.WriteFile(in))
	check(t, tiny.WriteRandomFile(t.Context(), filepath.Join(cmd.Dir, "other.gguf"), tiny.Spec{KVHeads: 2, Seed: 7}))
	_, err := mlc.Write(t.Context(), in, filepath.Join(cmd.Dir, "package"), mlc.Options{})
	check(t, err)
	own := "exec:mine=" + exampleEngine(t)
	for file, says := range map[string]string{"in.gguf": "same weights, compared value by value",
		"other.gguf": "same model, other weights: tensor blk.0.attn_k.weight differs: value 1 is"} {
		put(t, cmd.Dir, "plan.yaml", "name: forms\nengines: [llamacpp, '"+own+"']\nmodel: {name: m, llamacpp: "+file+
			", '"+own+"': package}\nprompts: [the quick]\nmax_tokens: 4\nrepetitions: 1\n")
		stdout, _ := well(t, resumed(cmd, "run", "plan.yaml"))
		mentions(t, strings.Join(strings.Fields(stdout), " "), says)
		mentions(t, strings.Join(strings.Fields(details(t, cmd.Dir)), " "), says)
	}
}

// An exec: engine may serve models by name.
func TestExecEngineServesItsOwnModel(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "-q", "--engine", "exec:./echo.py", "--model", "served:parrot", "--max-tokens",
		"8", "--repetitions", "1")
	files := documentsPython(t)
	serves := strings.NewReplacer(`policy=`, `formats=["served"], policy=`, `r["model"]["path"]`, `r["model"]["name"]`,
		`r["model"]["context"]`, `r["model"].get("context", 512)`).Replace(files)
	put(t, cmd.Dir, "echo.py", serves)
	well(t, cmd, "exec:echo.py on parrot")
	if m := recorded(t, cmd.Dir).Cells[0].Model; m.Name != "parrot" || m.Format != "served" {
		t.Errorf("%+v", m)
	}
	put(t, cmd.Dir, "echo.py", files)
	refuses(t, resumed(cmd, cmd.Args[1:]...), fault.BadModel,
		"exec:echo.py runs models in the format gguf, but parrot is served")
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
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "--engines", "llamacpp", "--engine", "exec:./babble.py", "--max-tokens", "4",
		"--repetitions", "1")
	check(t, os.WriteFile(filepath.Join(cmd.Dir, "babble.py"), []byte("#!/bin/sh\n"), 0o600))
	const why = "1 of 2 cells was refused: it cannot run here: exec:babble.py: ./babble.py cannot be run: permission denied;"
	stdout, _ := ends(t, cmd, fault.NoProgram)
	mentions(t, stdout, why)
	mentions(t, details(t, cmd.Dir), why)
	mentions(t, good(t, "report", filepath.Join(cmd.Dir, "results", "latest"), "--format", "markdown"), why)
}

// An engine whose attention is wrong is named beside a right one: its launches fail if its tokens are wrong, and the
// answer says so if only its scores are.
func TestWrongArithmeticIsNamed(t *testing.T) {
	lightTest(t)
	t.Parallel()
	example := exampleEngine(t)
	for _, name := range damage.Names() {
		cmd := program(t, "run", "--engines", "llamacpp", "--engine", "exec:mine="+example+" --fault "+name,
			"--max-tokens", "12", "--repetitions", "1")
		stdout, stderr, code := output(t, cmd)
		says := []string{"exec:mine, launch 2: warmup: token ", "the engine does not compute this model correctly"}
		if name == damage.Scale {
			says = []string{"Output: Wrong scores: exec:mine.", "12 of 12 identical", "apart (float32: 0.001)"}
		}
		mentions(t, stdout+stderr, says...)
		if (code == 0) != (name == damage.Scale) {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}
