package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/dryrun"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// A cell that a dry run refuses must not be measured in a run, and the other way round.
func TestDryRunAndRunRefuseTheSameCells(t *testing.T) {
	write := writingTo(t, t.TempDir())
	long := strings.Repeat("word ", 400)
	data := write("d.jsonl", "{\"prompt\":\"short\"}\n{\"prompt\":\""+long+"\"}\n")
	// each has room in 256, though the longest of both had not
	trace := write("t.csv", "time,input_tokens,output_tokens\n0,200,20\n1,20,200\n")
	text := "name: refused\nengines: [llamacpp]\ncontext: 256\nmax_tokens: 8\nrepetitions: 1\n" +
		"prompts: [fine, \"日 is not in its vocabulary\", \"" + long + "\", {dataset: " + data +
		", limit: 1}, {dataset: " + data + ", limit: 2}, " +
		"{trace: " + trace + "}, {conversation: [one, \"" + long + "\"]}]\n" +
		"models:\n  - tiny\n  - {model: tiny, tensor_parallel_size: 4}\n  - {model: tiny, quantization: awq}\n" +
		"  - {model: tiny, kv_cache_dtype: fp8}\n  - {model: tiny, kv_cache_dtype: q8_0}\n"
	prompts := []string{"", "has no token", "do not fit", "", "do not fit", "", "do not fit"}
	want := slices.Clone(prompts)
	for _, why := range []string{"tensor_parallel_size: 4", "quantization: awq", "kv_cache_dtype: fp8"} {
		want = append(want, slices.Repeat([]string{why}, len(prompts))...)
	}
	want = append(want, prompts...)
	p, err := plan.Parse([]byte(text), "p.yaml", kinds.All...)
	check(t, err)
	f := &runFlags{out: t.TempDir(), json: true}
	check(t, f.follow(p, func(string) bool { return false }))
	var out bytes.Buffer
	if err := f.dry(t.Context(), p, &out); fault.Of(err).ExitCode() != 2 && fault.Of(err).ExitCode() != 4 {
		t.Errorf("a dry run with refused cells ends with %v", err)
	}
	var doc struct {
		Planned []dryrun.Cell `json:"cells_planned"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Planned) != len(want) {
		t.Fatalf("%d cells, %v: %s", len(doc.Planned), err, out.String())
	}
	r := f.resolver(false, func(string, string) {}, io.Discard)
	defer r.Close()
	before, err := r.Resolve(t.Context(), p)
	check(t, err)
	id, refused := 0, 0
	is := func(what, got string) {
		if want := want[id]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("cell %d, %s: refused for %q, want %q", id+1, what, got, want)
		}
	}
	for s := range p.Setups() {
		set, err := r.Parts(before)(t.Context(), s)
		check(t, err)
		for range set.Shapes {
			is("dry run", doc.Planned[id].Missing)
			why := ""
			if err := set.Refused(record.Cell{ID: id + 1}); err != nil {
				why, refused = err.Error(), refused+1
			}
			is("run", why)
			id++
		}
	}
	if id != len(want) || before.Refused() != refused {
		t.Errorf("%d cells, of which %d are refused, and %d before the run", id, refused, before.Refused())
	}
}

func TestDryRunChecksFiles(t *testing.T) {
	for name, c := range map[string]struct {
		engine, prompt, want string
		class                fault.Kind
	}{
		"file":    {"llamacpp", "{file: nowhere.txt}", "can't read the prompt nowhere.txt", fault.Usage},
		"dataset": {"llamacpp", "{dataset: nowhere.jsonl}", "can't read the data set nowhere.jsonl", fault.Usage},
		"engine":  {"exec:./nowhere", "fine", "./nowhere", fault.NoProgram},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Parse([]byte(
				"name: dry\nengines: [\""+c.engine+"\"]\nmodel: tiny\nmax_tokens: 4\nprompts: ["+c.prompt+"]\n"),
				"p.yaml", kinds.All...)
			check(t, err)
			f := &runFlags{out: t.TempDir()}
			check(t, f.follow(p, func(string) bool { return false }))
			var out bytes.Buffer
			if err := f.dry(t.Context(), p, &out); fault.Of(err) != c.class ||
				!strings.Contains(out.String(), "1 of 1 cell can't run here: ") ||
				!strings.Contains(out.String(), c.want) {
				t.Errorf("%v, want %q in\n%s", err, c.want, out.String())
			}
		})
	}
}

// Only llama.cpp knows whether it supports an unfamiliar architecture: a dry run shows the cell as unknown, and the
// first launch fails with llama.cpp's message.
func TestUnknownArchitectureMayRun(t *testing.T) {
	t.Parallel()
	path, err := model.Path(model.Tiny)
	check(t, err)
	whole := readFile(t, path)
	path = writingTo(t, t.TempDir())("m.gguf", strings.ReplaceAll(whole, "llama", "lhama"))
	args := []string{"run", "--engines", "llamacpp,webllm", "--model", path, "--repetitions", "3", "--max-tokens", "4"}
	cmd := program(t, append(args, "--dry-run", "--json")...)
	stdout, stderr, code := output(t, cmd)
	var doc struct {
		Planned []dryrun.Cell `json:"cells_planned"`
		dryrun.Summary
	}
	err = json.Unmarshal([]byte(stdout), &doc)
	if err != nil || code != fault.UnknownArch.ExitCode() || len(doc.Planned) != 2 {
		t.Fatalf("%v, exit code %d: %s%s", err, code, stdout, stderr)
	}
	if c := doc.Planned[0]; c.Engine != "llamacpp" || c.Missing != "" || !strings.Contains(c.Unknown, "lhama") ||
		doc.MayRun != 1 {
		t.Errorf("%+v, %d may run", c, doc.MayRun)
	}
	if c := doc.Planned[1]; !strings.Contains(c.Missing, `architecture "lhama" is not supported`) || c.Unknown != "" {
		t.Errorf("%+v", c)
	}
	cmd = program(t, args...)
	if stdout, stderr, code = output(t, cmd); code != fault.BadModel.ExitCode() {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	r := recorded(t, cmd.Dir)
	attempts := map[string][]*record.Attempt{}
	for _, a := range r.Attempts {
		name := r.CellByID(a.Cell).Engine
		attempts[name] = append(attempts[name], a)
	}
	if l := attempts["llamacpp"]; len(l) != 1 || l[0].Class != record.BadModel ||
		!strings.Contains(l[0].Error, "lhama") {
		t.Errorf("llama.cpp: %d attempts, %+v", len(l), l)
	}
	if w := attempts["webllm"]; len(w) != 1 || w[0].Class != record.SetUp {
		t.Errorf("webllm: %d attempts, %+v", len(w), w)
	}
}

// It is no failure if the user did not ask for the missing engine.
func TestOtherEnginesRunIfOneCannot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     string
		launches int
		code     fault.Kind
	}{
		{"run", 1, ""},
		{"run --engines webllm,llamacpp", 1, fault.NoChrome},
		{"run --strict", 0, fault.NoChrome},
	} {
		t.Run(c.args, func(t *testing.T) {
			cmd := program(t, append(strings.Fields(c.args), "--repetitions", "1", "--max-tokens", "4")...)
			cmd.Env = append(cmd.Env, "PATH="+t.TempDir(), "LLMPARITY_CHROME=nosuchbrowser")
			if stdout, stderr, code := output(t, cmd); code != c.code.ExitCode() ||
				!strings.Contains(stderr, "nosuchbrowser") {
				t.Errorf("exit code %d, want %q: %s%s", code, c.code, stdout, stderr)
			}
			r, err := record.Open(filepath.Join(cmd.Dir, "results", "latest"))
			if (err == nil) != (c.launches > 0) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			_, stderr, code := output(t, resumed(cmd, "run", "--resume", "results/latest"))
			if code != c.code.ExitCode() || !strings.Contains(stderr, "1 cell refused (--retry-failed tries again)") {
				t.Errorf("resumed: exit code %d, want %q: %s", code, c.code, stderr)
			}
			counted := 0
			for _, a := range r.Attempts {
				if a.Counted() {
					counted++
				}
			}
			if counted != c.launches || (r.Status == record.OK) != (c.code == "") {
				t.Errorf("%d launches count, want %d; the run is %s", counted, c.launches, r.Status)
			}
		})
	}
}
