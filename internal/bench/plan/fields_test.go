package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/axis"
	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/record"
)

// differing describes cells by what their plan varies.
func differing(t *testing.T, text string, names ...string) (out []string) {
	t.Helper()
	for _, c := range expand(t, parse(t, text)).Cells {
		words := []string{c.Engine}
		for _, name := range names {
			if v := axis.Named(name).Of(&c); v != "" {
				words = append(words, name+" "+v)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// A cell has the values that its engine uses; of an engine's own fields, those that the plan varies.
func TestCellsHaveTheirValues(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"dtype: f16\nthreads: 2\nwebllm_version: 0.2.86\nkernels: gpu\n",
			[]string{"webllm dtype f16", "llamacpp dtype f16 threads 2"}},
		{"dtypes: [f32, f16]\nthreads: [1, 2]\nexclude: [{dtype: f16, threads: 1}]\n",
			[]string{"webllm dtype f32", "llamacpp dtype f32 threads 1", "llamacpp dtype f32 threads 2",
				"webllm dtype f16", "llamacpp dtype f16 threads 2"}},
		{"webllm_versions: [0.2.82, 0.2.86]\nllamacpp: {ubatch: [8, 16]}\n",
			[]string{"webllm webllm_version 0.2.82", "llamacpp ubatch 8", "webllm webllm_version 0.2.86",
				"llamacpp ubatch 16"}},
		{"include: [{engine: webllm, webllm_version: 0.2.82, start: cold}]\n",
			[]string{"webllm webllm_version 0.2.82 start cold", "llamacpp"}},
	} {
		got := differing(t, head+"input_lengths: [8]\nmax_tokens: 4\n"+c.text, axis.DType, axis.Threads, "kernels",
			"ubatch", "webllm_version", axis.Start)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// A build of WebLLM from a file and a version are values of one axis: each is a cell, in a list or by include.
func TestBundleBesideVersion(t *testing.T) {
	for text, want := range map[string][]string{
		"webllm_versions: [0.2.82]\nwebllm_bundle: my.js\n":                {"0.2.82 ", " my.js"},
		"webllm_versions: [0.2.82, 0.2.86]\nwebllm_bundle: [a.js, b.js]\n": {"0.2.82 ", "0.2.86 ", " a.js", " b.js"},
		"include:\n- {input_length: 8, webllm_version: 0.2.82}\n- {input_length: 16, webllm_bundle: my.js}\n": {
			"0.2.82 ", " my.js"},
		"webllm_bundle: my.js\ninclude: [{input_length: 16, webllm_version: 0.2.86}]\n": {" my.js", "0.2.86 "},
		"webllm_version: 0.2.82\ninclude: [{input_length: 16, webllm_bundle: my.js}]\n": {"0.2.82 ", " my.js"},
		"webllm_versions: [0.2.82]\nwebllm_bundle: [a.js, b.js]\nexclude: [{webllm_bundle: a.js}]\n": {
			"0.2.82 ", " b.js"},
	} {
		lengths := "[8, 16]"
		if !strings.Contains(text, "input_length") {
			lengths = "[8]"
		}
		p := parse(t, "name: p\nengines: [webllm]\nmodel: tiny\nmax_tokens: 4\ninput_lengths: "+lengths+"\n"+text)
		writtenAndRead(t, p)
		m := expand(t, p)
		var got []string
		for i, c := range m.Cells {
			s := m.Setups[c.Setup-1].Plan
			bundle, _ := s.Sections["webllm"]["webllm_bundle"].(string)
			got = append(got, s.Versions["webllm_version"]+" "+bundle)
			if said := c.Settings["webllm_version"] + " " + c.Settings["webllm_bundle"]; said != want[i] {
				t.Errorf("%s: the record of cell %d has %q", text, c.ID, said)
			}
		}
		if !slices.Equal(got, want) || len(m.Setups) != len(want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Each row has what flags, the schema and entries derive from it, and a list that its flag can set.
func TestFieldsAreComplete(t *testing.T) {
	for _, f := range plan.Fields(kinds.All) {
		if (f.Flag == "") != (f.Name == axis.Engine) || f.Flag != "" && (f.Heading == "" || f.Help == "") ||
			f.List == "" {
			t.Errorf("%s: flag %q, heading %q, help %q, list %q", f.Name, f.Flag, f.Heading, f.Help, f.List)
		}
		p := parse(t, head+body)
		value := "7"
		switch {
		case f.Known != nil:
			value = f.Known[len(f.Known)-1]
		case f.Text():
			value = "webllm"
		}
		if err := p.Set(f.List, value); err != nil {
			t.Errorf("%s: %v", f.List, err)
			continue
		}
		ran := slices.ContainsFunc(expand(t, p).Cells, func(c record.Cell) bool {
			return strings.Contains(fmt.Sprintf("%+v", c), value)
		})
		if f.Read != nil && !ran {
			t.Errorf("%s: no cell has %s", f.Name, value)
		}
	}
}
