package plans_test

import (
	"bytes"
	"regexp"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

// shipped are all built-in plans.
func shipped(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"default": plans.Default, "init": plans.Init}
	for _, name := range plans.Names() {
		text, err := plans.Preset(name)
		check.Err(t, err)
		all[name] = text
	}
	return all
}

func TestBuiltInPlansExpand(t *testing.T) {
	cells := map[string]int{"default": 2, "init": 2, "smoke": 2, "compare": 2, "kv-growth": 6, "concurrency": 12,
		"seqlen": 8, "mixed": 4, "engines": 7, "matrix": 30}
	for name, text := range shipped(t) {
		p, err := plan.Parse(text, name+".yaml", kinds.All...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p.Engines = kinds.All.In(name)
		if p.Name != name && name != "init" {
			t.Errorf("%s is called %s", name, p.Name)
		}
		m, err := p.Expand()
		if err != nil || len(m.Cells) != cells[name] {
			t.Errorf("%s: %+v, %v; want %d cells", name, m, err, cells[name])
			continue
		}
		for _, c := range m.Cells {
			if c.MaxTokens < 1 || c.Prompt == "" && c.InputTokens == 0 && len(c.Traffic.Mix) == 0 {
				t.Errorf("%s has an empty request: %+v", name, c)
			}
		}
		if !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s has no description", name)
		}
	}
}

// Each commented line of the template can be used, alone or instead of the one that it excludes.
func TestCommentedLinesArePlans(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`models: .*`, `model: .*`}, {` - \{file.*`, ""}, {` - \{dataset.*`, ""}, {` - \{trace.*`, ""},
		{` - \{conv.*`, ""},
		{`input_lengths: .*`, `prompts:\n  - .*`}, {`output_lengths: .*`, `max_tokens: .*`}, {`context: .*`, ""},
		{`contexts: .*`, ""},
		{`dtype: .*`, ""}, {`dtypes: .*`, ""}, {`kv_cache_dtypes: .*`, ""}, {`webllm_versions: .*`, ""},
		{`threads: .*`, ""}, {`starts: .*`, ""},
		{`concurrency: .*`, ""}, {`batch_sizes: .*`, ""}, {`traffic:\n(#   .*\n)+`, ""}, {`include:\n(#   .*\n)+`, ""},
		{`until_ci: .*`, ""},
		{`seed: .*`, ""}, {`cool_down: .*`, ""}, {`cache: .*`, ""}, {`cell_timeout: .*`, ""}, {`run_timeout: .*`, ""},
		{`parity: .*`, ""},
		{`gate:\n(#   .*\n)+`, ""},
	} {
		at := regexp.MustCompile(`(?m)^#\s?` + c.in).FindIndex(plans.Init)
		if at == nil {
			t.Errorf("%s not found", c.in)
			continue
		}
		in := regexp.MustCompile(`(?m)^#( ?)`).ReplaceAll(plans.Init[at[0]:at[1]], []byte("$1"))
		if in[0] == ' ' && in[1] != ' ' {
			in = regexp.MustCompile(`(?m)^ `).ReplaceAll(in, nil)
		}
		text := append(append(bytes.Clone(plans.Init[:at[0]]), in...), plans.Init[at[1]:]...)
		if c.out != "" {
			text = regexp.MustCompile(`(?m)^`+c.out).ReplaceAll(text, nil)
		}
		if _, err := plan.Parse(text, "p.yaml", kinds.All...); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestUnknownPresets(t *testing.T) {
	if _, err := plans.Preset("default"); err == nil {
		t.Error("the default plan is a preset")
	}
	if what, err := plans.What("seqlen"); err != nil ||
		what != "Measure speed and memory with different prompt lengths (fig3, fig4)." {
		t.Errorf("%q, %v", what, err)
	}
}
