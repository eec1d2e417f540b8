package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// head is a plan without prompts and output length.
const head = "name: p\nengines: [webllm, llamacpp]\nmodel: tiny\n"

func parse(t testing.TB, text string) plan.Plan {
	t.Helper()
	p, err := plan.Parse([]byte(text), "p.yaml", kinds.All...)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

// expand expands a plan that has cells.
func expand(t testing.TB, p plan.Plan) *plan.Matrix {
	t.Helper()
	m, err := p.Expand()
	check.Err(t, err)
	return m
}

// cells formats the cells of a plan.
func cells(t testing.TB, p plan.Plan) []string {
	var out []string
	for _, s := range expand(t, p).Setups {
		for _, c := range s.Cells {
			out = append(out, fmt.Sprintf("%d %s %s prompt %d%q in %d out %d ctx %d %s kv %s v%s t%d %s slots %d",
				c.Setup, c.Model.Name, c.Engine, c.PromptID,
				c.Prompt, c.InputTokens, c.MaxTokens, c.Model.Context, c.DType, c.KVDType,
				s.Plan.Versions["webllm_version"], s.Plan.Threads,
				c.Start, s.Plan.Slots))
		}
	}
	return out
}

func TestNumbersOfCells(t *testing.T) {
	for text, want := range map[string][2]int{
		"input_lengths: 8\nmax_tokens: 4\nwebllm: {kernels: [mlc, gpu], thread: [page, worker]}\nllamacpp: {gpu_layers: [0, 9]}\n": {5, 6},

		"prompts: [a, b]\nmax_tokens: 4\n":                                                       {1, 4},
		"input_lengths: [8, 16, 32]\noutput_lengths: [4, 8]\n":                                   {1, 12},
		"input_lengths: 8\nmax_tokens: 4\ndtype: [f32, f16]\n":                                   {2, 4},
		"input_lengths: 8\nmax_tokens: 4\ncontexts: [64, 128]\nstarts: [cold, warm]\n":           {4, 8},
		"input_lengths: 8\nmax_tokens: 4\nwebllm_versions: [0.2.82, 0.2.83, 0.2.86]\n":           {3, 4},
		"input_lengths: 8\nmax_tokens: 4\nthreads: [1, 2]\n":                                     {2, 3},
		"input_lengths: 8\nmax_tokens: 4\nthreads: [1, 2]\nwebllm_versions: [0.2.82, 0.2.83]\n":  {3, 4},
		"input_lengths: 8\nmax_tokens: 4\nconcurrency: [1, 2, 4]\nbatch_sizes: [1]\n":            {3, 6},
		"input_lengths: 8\nmax_tokens: 4\nexclude: [{engine: webllm}]\n":                         {1, 1},
		"input_lengths: [8, 16]\nmax_tokens: 4\nexclude: [{engine: webllm, input_length: 8}]\n":  {1, 3},
		"input_lengths: [8, 16]\nmax_tokens: 4\ncontexts: [64, 128]\nexclude: [{context: 64}]\n": {1, 4},
		"input_lengths: 8\nmax_tokens: 4\nwebllm: {thread: [page, worker], kernels: [gpu, mlc]}\nllamacpp: {ubatch: [8, 16]}\n" +
			"exclude: [{thread: page, kernels: [mlc]}, {engine: llamacpp, llamacpp.ubatch: 16}]\n": {3, 4},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{engine: webllm, context: 64}]\n":        {2, 4},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{input_length: 99}]\n":                   {2, 6},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{model: other, input_length: [1, 2]}]\n": {2, 8},
	} {
		p := parse(t, head+text)
		m := expand(t, p)
		if len(m.Setups) != want[0] || len(m.Cells) != want[1] {
			t.Errorf("%s: %d setups, %d cells; want %v:\n%s", text, len(m.Setups), len(m.Cells), want,
				strings.Join(cells(t, p), "\n"))
		}
		for i, c := range m.Cells {
			if s := m.Setups[c.Setup-1]; c.ID != i+1 || s.ID != c.Setup || !slices.ContainsFunc(s.Cells,
				func(own record.Cell) bool { return own.ID == c.ID }) {
				t.Errorf("%s: cell %d is %+v, in setup %d", text, i+1, c, s.ID)
			}
		}
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"prompts: [a, b]\nmax_tokens: 4\ncontext: 64\n", []string{
			`1 tiny webllm prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 0`,
			`1 tiny llamacpp prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 0`,
			`1 tiny webllm prompt 2"b" in 0 out 4 ctx 64  kv  v t0  slots 0`,
			`1 tiny llamacpp prompt 2"b" in 0 out 4 ctx 64  kv  v t0  slots 0`}},
		// A version is nothing to llama.cpp, and threads are nothing to WebLLM: each is asked once.
		{"input_lengths: [8]\noutput_lengths: [4]\ncontext: 64\nwebllm_versions: [0.2.82, 0.2.86]\nthreads: [1, 2]\n",
			[]string{
				`1 tiny webllm prompt 1"" in 8 out 4 ctx 64  kv  v0.2.82 t1  slots 0`,
				`1 tiny llamacpp prompt 1"" in 8 out 4 ctx 64  kv  v0.2.82 t1  slots 0`,
				`2 tiny llamacpp prompt 1"" in 8 out 4 ctx 64  kv  v0.2.82 t2  slots 0`,
				`3 tiny webllm prompt 1"" in 8 out 4 ctx 64  kv  v0.2.86 t1  slots 0`}},
		// An entry of include whose axes choose cells sets the rest in them; what a launch needs makes them a setup of
		// their own.
		{"engine: [webllm, llamacpp]\ninput_lengths: [8, 16]\noutput_length: 4\ncontext: 64\ninclude:\n  - {engine: llamacpp, context: 32, threads: 2}\n" +
			"  - {input_length: 16, max_tokens: 4, start: cold}\n", []string{
			`1 tiny webllm prompt 1"" in 8 out 4 ctx 64  kv  v t0  slots 0`,
			`2 tiny llamacpp prompt 1"" in 8 out 4 ctx 32  kv  v t2  slots 0`,
			`3 tiny webllm prompt 2"" in 16 out 4 ctx 64  kv  v t0 cold slots 0`,
			`4 tiny llamacpp prompt 2"" in 16 out 4 ctx 32  kv  v t2 cold slots 0`}},
		// One that chooses none adds cells.
		{"input_lengths: [8]\nmax_tokens: 4\ncontext: 64\nexclude: [{engine: webllm}]\ninclude: [{input_length: [8, 12], engine: webllm, dtype: float16}]\n", []string{
			`1 tiny llamacpp prompt 1"" in 8 out 4 ctx 64  kv  v t0  slots 0`,
			`2 tiny webllm prompt 1"" in 8 out 4 ctx 64 f16 kv  v t0  slots 0`,
			`2 tiny webllm prompt 2"" in 12 out 4 ctx 64 f16 kv  v t0  slots 0`}},
		{"prompts: [a, b]\nmax_tokens: 4\ncontext: 64\nkv_cache_dtype: [auto, q8_0]\nexclude:\n  - {engine: webllm, kv_cache_dtype: q8_0}\n  - {prompt: 2}\n", []string{
			`1 tiny webllm prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 0`,
			`1 tiny llamacpp prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 0`,
			`2 tiny llamacpp prompt 1"a" in 0 out 4 ctx 64  kv q8_0 v t0  slots 0`}},
		{"engines: [llamacpp]\nprompts: [a]\nmax_tokens: 4\ncontext: 64\nconcurrency: [1, 4]\n", []string{
			`1 tiny llamacpp prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 1`,
			`2 tiny llamacpp prompt 1"a" in 0 out 4 ctx 64  kv  v t0  slots 4`}},
	} {
		text := c.text
		if strings.HasPrefix(text, "engine") {
			text = "name: p\nmodel: tiny\n" + text
		} else {
			text = head + text
		}
		if got := cells(t, parse(t, text)); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

const foreignPlan = `models:
  - model_id: "meta-llama/Llama-2-7b-hf"
    container_name: "vllm-inference"
    input_lengths: [256, 512, 1024]
    output_lengths: [256, 512]
    batch_sizes: [1, 8, 16]
    dtype: "float16"
    tensor_parallel_size: 1
    quantization: null
    model_params: 6.7e9
    num_layers: 32
    num_heads: 32
    hidden_size: 4096

  - model_id: "meta-llama/Llama-2-70b-hf"
    container_name: "vllm-inference"
    input_lengths: [512, 1024]
    output_lengths: [256, 512]
    batch_sizes: [1, 4, 8]
    dtype: bfloat16
    tensor_parallel_size: 4
    quantization: awq
    kv_cache_dtype: fp8
    gpu_memory_utilization: 0.9
    head_dim: 128
    max_model_len: 4096
    model_params: 70e9
`

// All fields of other tools' plans are read; those without effect are named.
func TestPlanOfAnotherTool(t *testing.T) {
	p := parse(t, foreignPlan)
	m := expand(t, p)
	if len(m.Setups) != 2*3 || len(m.Cells) != 3*2*3+2*2*3 || !slices.Equal(p.Engines, []string{"vllm"}) ||
		p.Name != "p" || p.Repetitions != 6 {
		t.Errorf("%d setups, %d cells: %+v", len(m.Setups), len(m.Cells), p)
	}
	p = parse(t, foreignPlan+"engines: [openai]\nopenai: {url: http://127.0.0.1:8000}\n") // as docs/howto/write-a-plan.md says
	m = expand(t, p)
	if len(m.Cells) != 3*2*3+2*2*3 || !slices.Equal(p.Engines, []string{"openai"}) {
		t.Errorf("for a server: %d cells, engines %v", len(m.Cells), p.Engines)
	}
	if s := m.Setups[0]; s.Plan.DType != "f16" || s.Plan.Params != 6.7e9 || s.Plan.Layers != 32 || s.Plan.Heads != 32 ||
		s.Plan.HiddenSize != 4096 || s.Plan.Context != plan.Unsaid {
		t.Errorf("%+v", s.Plan)
	}
	last := m.Setups[len(m.Setups)-1]
	if last.Plan.Context != 4096 || last.Plan.HeadDim != 128 || last.Plan.Slots != 8 {
		t.Errorf("%+v", last.Plan)
	}
}

func TestSetReplacesAxis(t *testing.T) {
	p := parse(t, "name: p\nmodels:\n  - {model: a, input_lengths: [8], dtype: f32, engines: [webllm]}\n  - b\nprompts: [x]\nmax_tokens: 4\nwebllm_bundle: x.js\n"+
		"traffic: {concurrency: 2}\n")
	for _, c := range [][]string{{"input_lengths", "16", "32"}, {"output_lengths", "5"}, {"dtypes", "float16", "f32"},
		{"engines", "llamacpp"}, {"concurrency", "1", "2"},
		{"contexts", "64"}, {"webllm_versions", "0.2.86"}} {
		check.Also(t, p.Set(c[0], c[1:]...))
	}
	want := plan.Plan{Name: "p", Models: []plan.Group{{Model: "a"}, {Model: "b"}}, Engines: []string{"llamacpp"},
		MaxTokens: 5, Context: 64, Versions: map[string]string{"webllm_version": "0.2.86"},
		Axes:   plan.Axes{InputLengths: []int{16, 32}, DTypes: []string{"f16", "f32"}, Concurrency: []int{1, 2}},
		Warmup: plan.Warmup{Launches: 1, Tokens: 8}, Repetitions: 6, Timeout: p.Timeout, Traffic: &plan.Traffic{}}
	got, err := p.YAML()
	wanted, err2 := want.YAML()
	if err != nil || err2 != nil || string(got) != string(wanted) {
		t.Errorf("%v %v\n%s\nwant\n%s", err, err2, got, wanted)
	}
	check.Also(t, p.Validate())
	for _, c := range [][2]string{{"lengths", "1"}, {"input_lengths", "many"}} {
		if err := p.Set(c[0], c[1]); err == nil {
			t.Errorf("%s: no error", c)
		}
	}
	if err := p.Set("models", "c"); err != nil || p.Model != "c" || p.Models != nil {
		t.Errorf("%v %+v", err, p)
	}
}

// A reference cell is named by values that cells have.
func TestReferenceCell(t *testing.T) {
	const three = "name: p\nmodel: tiny\nprompts: [a]\nmax_tokens: 4\nrepetitions: 1\nengines: [llamacpp]\n" +
		"contexts: [256, 512]\nllamacpp: {ubatch: [64, 128]}\n"
	got := expand(t, parse(t, three+"reference_cell: {context: 512, llamacpp.ubatch: 128}\n")).Reference
	if want := map[string]string{"context": "512", "ubatch": "128"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for value, want := range map[string]string{
		"{context: 1024}":       "reference_cell.context: no cell has 1024; available: 256, 512",
		"{context: [256, 512]}": "reference_cell.context: 2 values; a reference cell has one",
	} {
		p := parse(t, three+"reference_cell: "+value+"\n")
		if _, err := p.Expand(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	var p plan.Plan
	if err := p.Refer(map[string]string{"contxt": "512"}); err == nil || !strings.Contains(err.Error(), "context") {
		t.Errorf("a wrong axis: %v", err)
	}
}
