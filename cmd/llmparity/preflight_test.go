package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// A cell that a dry run refuses must not be measured in a run, and the other way round.
func TestDryRunAndRunRefuseTheSameCells(t *testing.T) {
	lightTest(t)
	dir, long := t.TempDir(), strings.Repeat("word ", 400)
	data := put(t, dir, "d.jsonl", "{\"prompt\":\"short\"}\n{\"prompt\":\""+long+"\"}\n")
	// each has room in 256, though the longest of both had not
	trace := put(t, dir, "t.csv", "time,input_tokens,output_tokens\n0,200,20\n1,20,200\n")
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
	f, p := following(t, text)
	var out bytes.Buffer
	if err := f.dry(t.Context(), p, &out); fault.Of(err).ExitCode() != 2 && fault.Of(err).ExitCode() != 4 {
		t.Errorf("a dry run with refused cells ends with %v", err)
	}
	doc := decoded[wouldRun](t, out.String())
	if len(doc.Planned) != len(want) {
		t.Fatalf("%d cells: %s", len(doc.Planned), &out)
	}
	r := resolver(t, f, p, false)
	defer r.Close()
	before, err := r.Resolve(t.Context())
	check(t, err)
	id, refused := 0, 0
	is := func(what, got string) {
		if want := want[id]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("cell %d, %s: refused for %q, want %q", id+1, what, got, want)
		}
	}
	for _, s := range before.Setups {
		set, err := before.Open(t.Context(), s)
		check(t, err)
		for range s.Cells {
			is("dry run", doc.Planned[id].Missing)
			why := ""
			if err := set.Refused[id+1]; err != nil {
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

// Only llama.cpp knows whether it supports an unfamiliar architecture: a dry run shows the cell as unknown, and the
// first launch fails with llama.cpp's message.
func TestUnknownArchitectureMayRun(t *testing.T) {
	browserTest(t)
	t.Parallel()
	path := put(t, t.TempDir(), "m.gguf", strings.ReplaceAll(readFile(t, tinyOf(t).Path), "llama", "lhama"))
	args := []string{"run", "--engines", "llamacpp,webllm", "--model", path, "--repetitions", "3", "--max-tokens", "4"}
	cmd := program(t, append(args, "--dry-run", "--json")...)
	stdout, _ := ends(t, cmd, fault.UnknownArch)
	doc := decoded[wouldRun](t, stdout)
	if c := doc.Planned[0]; c.Engine != "llamacpp" || c.Missing != "" || !strings.Contains(c.Unknown, "lhama") ||
		doc.MayRun != 1 {
		t.Errorf("%+v, %d may run", c, doc.MayRun)
	}
	if c := doc.Planned[1]; !strings.Contains(c.Missing, `architecture "lhama" is not supported`) || c.Unknown != "" {
		t.Errorf("%+v", c)
	}
	ends(t, resumed(cmd, args...), fault.BadModel)
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
	browserTest(t)
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
			ends(t, cmd, c.code, "nosuchbrowser")
			r, err := record.Open(filepath.Join(cmd.Dir, "results", "latest"))
			if (err == nil) != (c.launches > 0) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			ends(t, resumed(cmd, "run", "--resume", "results/latest"), c.code, "1 cell refused (--retry-failed tries again)")
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
