package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// What is said to be impossible before a run is what its setups refuse and what a dry run shows, cell by cell: a cell
// that was called impossible and is measured all the same has a figure of something else than was asked for.
func TestTheSameCellsAreRefusedEverywhere(t *testing.T) {
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
	prompts := []string{"", "can't express", "do not fit", "", "do not fit", "", "do not fit"}
	want := slices.Clone(prompts)
	for _, why := range []string{"tensor_parallel_size: 4", "quantization: awq", "kv_cache_dtype: fp8"} {
		want = append(want, slices.Repeat([]string{why}, len(prompts))...)
	}
	want = append(want, prompts...)
	p, err := plan.Parse([]byte(text), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &runFlags{out: t.TempDir(), json: true}
	if err := f.follow(p, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.dry(t.Context(), p, &out); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Planned []plannedCell `json:"cells_planned"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Planned) != len(want) {
		t.Fatalf("%d cells, %v: %s", len(doc.Planned), err, out.String())
	}
	r := f.resolver(false, func(string, string) {}, io.Discard)
	defer r.Close()
	before, err := r.Resolve(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	id, refused := 0, 0
	is := func(what, got string) {
		if want := want[id]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("cell %d, %s: refused for %q, want %q", id+1, what, got, want)
		}
	}
	for s := range p.Setups() {
		set, _, err := r.Parts(before)(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
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

// A dry run says what is wrong with a plan's files and engines of one's own, which are looked at without starting
// anything.
func TestDryRunLooksAtFiles(t *testing.T) {
	for name, c := range map[string]struct{ engine, prompt, want string }{
		"file":    {"llamacpp", "{file: nowhere.txt}", "nowhere.txt can't be read"},
		"dataset": {"llamacpp", "{dataset: nowhere.jsonl}", "nowhere.jsonl can't be read"},
		"engine":  {"exec:./nowhere", "fine", "./nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Parse([]byte(
				"name: dry\nengines: [\""+c.engine+"\"]\nmodel: tiny\nmax_tokens: 4\nprompts: ["+c.prompt+"]\n"),
				"p.yaml")
			if err != nil {
				t.Fatal(err)
			}
			f := &runFlags{out: t.TempDir()}
			if err := f.follow(p, func(string) bool { return false }); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := f.dry(t.Context(), p, &out); err != nil ||
				!strings.Contains(out.String(), "1 of 1 cell can't run here: ") ||
				!strings.Contains(out.String(), c.want) {
				t.Errorf("%v, want %q in\n%s", err, c.want, out.String())
			}
		})
	}
}
