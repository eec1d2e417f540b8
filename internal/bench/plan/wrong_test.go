package plan_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
)

// body follows head; its lines are 4 and 5.
const body = "input_lengths: [8, 16]\nmax_tokens: 4\n"

// wrong are invalid plans with their errors, and whether the schema refuses them too.
var wrong = []struct {
	text   string
	want   string
	unseen bool // by a schema: it is a matter of several fields, or of what is not JSON
}{
	{head + body + "input_length: [4]\n", "p:6: input_length: cannot be combined with input_lengths; remove one", true},
	{head + body + "inputs: [4]\n", `p:6: unknown field "inputs"; did you mean "input_lengths"?`, false},
	{head + body + "dtype: f32\ndtypes: [f16]\n", "p:7: dtypes: cannot be combined with dtype; remove one", true},
	{head + body + "dtypes: [f32, float32]\n", `p:6: dtypes[1]: duplicate value "f32"`, true},
	{head + body + "dtypes: [f32, q4]\n", `p:6: dtypes[1]: unknown value "q4"; use f32, f16 or bf16`, false},
	{head + body + "kv_cache_dtype: int4\n", `p:6: kv_cache_dtype: unknown value "int4"; use f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, fp8, fp8_e4m3 or fp8_e5m2`, false},
	{head + body + "contexts:\n- 64\n- 1\n", "p:8: contexts[1]: 1 is too small; use at least 2, or 0 for the model's maximum", false},
	{head + body + "contexts:\n- 64\n- 10000001\n", "p:8: contexts[1]: 10000001 is too large; use at most 10000000, or 0 for the model's maximum", false},
	{head + body + "contexts: many\n", `p:6: contexts: must be a whole number, not "many"`, false},
	{head + body + "contexts: {a: 1}\n", "p:6: contexts: must be a list, not a group of settings",
		false},
	{head + body + "thread_counts: [0]\n", "p:6: thread_counts[0]: 0 is out of range; use 1 to 10000000", false},
	{head + body + "concurrency: [2, 4,\n  2]\n", "p:7: concurrency[2]: duplicate value 2", false},
	{head + body + "concurrency: -1\n", "p:6: concurrency: -1 is out of range; use 1 to 10000", false},
	{head + body + "batch_sizes: 2.5\n", `p:6: batch_sizes: must be a whole number, not "2.5"`, false},
	{head + body + "batch_sizes: [\"2\"]\n", `p:6: batch_sizes[0]: must be a whole number, not "2"`,
		false},
	{head + body + "starts: [cold, luke]\n", `p:6: starts[1]: unknown value "luke"; use cold or warm`, false},
	{head + body + "starts: [cold]\nisolation: shared\n",
		"p:7: isolation: shared cannot be combined with a cold start; use launch", true},
	{head + body + "output_lengths: [2]\n", "p:6: output_lengths: cannot be combined with max_tokens; remove one", true},
	{head + "input_lengths: [0]\nmax_tokens: 4\n", "p:4: input_lengths[0]: 0 is out of range; use 1 to 10000000",
		false},
	{head + "input_lengths: [8]\nmax_tokens: -4\n", "p:5: max_tokens: -4 is too small; use at least 1", false},
	{head + "input_lengths: [8]\n", "p: max_tokens: 0 is too small; use at least 1", true},
	{head + "max_tokens: 4\n", "p: prompts: missing; set prompts or input_lengths", true},
	{head + body + "prompts: [a]\n", "p:4: input_lengths: cannot be combined with prompts; remove one", true},
	{head + body + "order: random\n", `p:6: order: unknown value "random"; use interleaved, shuffled or grouped`, false},
	{head + body + "cache: yes\n", `p:6: cache: unknown value "yes"; use off or on`, false},
	{head + body + "seed: -1\n", `p:6: seed: must be a whole number of at least 0, not "-1"`, false},
	{head + body + "cool_down: -3s\n", "p:6: cool_down: must be a duration such as 10s, or 0 for none", false},
	{head + body + "cell_timeout: 1m\n", "p:6: cell_timeout: 1m0s is less than the timeout of one launch, 3m0s",
		true},
	{head + body + "repetitions: 0\n", "p:6: repetitions: 0 is too small; use at least 1", false},
	{head + body + "until_ci: 5\n", `p:6: until_ci: "5" is not a percentage such as 5%`, false},
	{head + body + "until_ci: 0%\n", "p:6: until_ci: 0% is out of range; use more than 0% and at most 100%", true},
	{head + body + "until_ci: {figure: decode_tps}\n", "p:6: until_ci: 0% is out of range; use more than 0% and at most 100%", false},
	{head + body + "until_ci:\n  width: 5%\n  figure: decode\n",
		`p:8: until_ci.figure: there is no figure "decode"`, true},
	{head + body + "until_ci:\n  width: 5%\n  max_repetitions: 2\n",
		"p:8: until_ci.max_repetitions: 2 is less than repetitions: 6", true},
	{head + body + "text_of: weblm\n", `p:6: text_of: "weblm" is not an engine of the plan (webllm, llamacpp)`, true},
	{head + body + "quality_of: weblm\n", `p:6: quality_of: "weblm" is not an engine of the plan (webllm, llamacpp)`, true},
	{head + body + "exclude: [{engine: weblm}]\n",
		"p:6: exclude[0].engine: no cell has weblm; available: webllm, llamacpp", true},
	{head + body + "exclude:\n- engine: webllm\n- input_length: 9\n",
		"p:8: exclude[1].input_length: no cell has 9; available: 8, 16", true},
	{head + body + "exclude:\n- engin: webllm\n", `p:7: unknown field "exclude[0].engin"; did you mean "engine"?`,
		false},
	{head + body + "exclude: [{}]\n", "p:6: exclude[0]: empty; name cells, e.g. {engine: webllm}", false},
	{head + body + "exclude: [{engine: []}]\n", "p:6: exclude[0].engine: no value", false},
	{head + body + "exclude: [{prompt: 1}]\n",
		"p:6: exclude[0].prompt: the plan only has input_lengths; use input_length", true},
	{head + body + "exclude: [{dtype: f16}]\n",
		"p:6: exclude[0].dtype: no cell has f16; available: only the default", true},
	{head + body + "exclude: [{engine: [webllm, llamacpp]}]\n", "p:6: exclude: leaves no cells; remove entries or make them more specific", true},
	{head + body + "include: [{context: [32, 64]}]\n", "p:6: include[0].context: not an axis of this plan, so only one value can be set; add a list to the plan for several",
		true},
	{head + body + "include: [{input_length: -1}]\n",
		"p:6: include[0].input_length: -1 is out of range; use 1 to 10000000", true},
	{head + body + "include: {input_length: x}\n",
		`p:6: include.input_length: must be a whole number, not "x"`, true},
	{head + body + "models: [a]\n", "p:6: models: cannot be combined with model; remove one", true},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- b\n- a\n" + body, "p:6: models[2]: duplicate model a", true},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- {engines: [x]}\n" + body, "p:5: models[1].model: missing; use tiny if you have no file",
		false},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- [b]\n" + body,
		"p:5: models[1]: must be a model's name or a group with a model, not a list", false},
	{"name: p\nmodels:\n- model: a\n  num_layer: 3\n" + body,
		`p:4: unknown field "models[0].num_layer"; did you mean "num_layers"?`, false},
	{"name: p\nmodels:\n- model: a\n  input_lengths: [8, -1]\nmax_tokens: 4\n",
		"p:4: models[0].input_lengths[1]: -1 is out of range; use 1 to 10000000", false},
	{"name: p\nmodels:\n- model: a\n  gpu_memory_utilization: 90\n" + body,
		"p:4: models[0].gpu_memory_utilization: 90 is out of range; use a share, e.g. 0.9", false},
	{"name: p\nmodels:\n- model: a\n  model_params: many\n" + body,
		`p:4: models[0].model_params: must be a number, not "many"`, false},
	{"name: p\nengines: []\nmodel: tiny\n" + body, "p:2: engines: missing", false},
	{"name: p\nengines: [webllm]\n" + body, "p: model: missing; use tiny if you have no file", false},
	{"name: p\nengines: [llamacpp]\nmodel: tiny\nwebllm: {thread: [page, worker]}\n" + body,
		"p:4: webllm.thread: no engine of the plan uses it; add webllm to engines", true},
	{head + body + "webllm: {kernels: [mlc, gpu]}\nexclude: [{kernels: fast}]\n",
		"p:7: exclude[0].kernels: no cell has fast; available: mlc, gpu", true},
	{head + body + "exclude: [{kernels: mlc}]\n", "p:6: exclude[0].kernels: not an axis of this plan", true},
	{head + body + "webllm:\n  kernels: [mlc, fast]\n", `p:7: webllm.kernels: unknown value "fast"`, false},
	{head + body + "kernels: [mlc, mlc]\n", `p:6: kernels[1]: duplicate value "mlc"`, false},
	{head + body + "kernels: mlc\nwebllm: {kernels: gpu}\n",
		"p:6: kernels: cannot be combined with webllm.kernels; remove one", true},
	{head + body + "llamacpp: {cache_type_v: [f16, q8_0]}\n",
		"p:6: llamacpp.cache_type_v: q8_0 needs flash attention", true},
	{"name: p\nengines: [llamacpp]\nmodel: {name: m}\n" + body,
		"p:3: model.name: name the model's form for each engine", false},
	{"name: p\nengines: [llamacpp]\nmodel: {name: m, model: n, llamacpp: x}\n" + body,
		"p:3: model.name: cannot be combined with model; remove one", false},
	{"name: p\nengines: [llamacpp]\nmodels: [{llamacpp: x}]\n" + body, "p:3: models[0].model: missing", false},
	{"name: p\nengines: [llamacpp]\nmodel: {name: m, lamacpp: x}\n" + body,
		`p:3: unknown field "model.lamacpp"; did you mean "llamacpp"?`, false},
	{"name: p\nengines: [llamacpp]\nmodel: tiny\nwebllm_versions: [a, b]\n" + body,
		"p:4: webllm_versions: no engine of the plan uses it; add webllm to engines", true},
	{"name: p\nengines: [webllm]\nmodel: tiny\nthreads: [1, 2]\n" + body,
		"p:4: threads: no engine of the plan uses it; add wllama or transformersjs or llamacpp or llamacpp-oneshot or ollama or huggingface or vllm or sglang or server or exec:PATH to engines", true},
	{head + "max_tokens: 4\nprompts:\n- a\n- ''\n", "p:7: prompts[1]: empty", false},
	{head + "max_tokens: 4\nprompts:\n- a\n- {file: x, dataset: y}\n- b\n",
		"p:7: prompts[1].dataset: cannot be combined with file; remove one", false},
	{head + "max_tokens: 4\nprompts:\n- {text: x, file: y}\n", "p:6: prompts[0]: text cannot be combined with other sources; make them separate entries", false},
	{head + "max_tokens: 4\nprompts:\n- {limit: 3}\n", "p:6: prompts[0].file: missing; set text, file, dataset, trace or conversation", false},
	{head + "max_tokens: 4\nprompts:\n- {file: x, limit: 3}\n", "p:6: prompts[0].limit: requires dataset or trace, not file", false},
	{head + "max_tokens: 4\nprompts:\n- {data: x}\n", `p:6: unknown field "prompts[0].data"; did you mean "dataset"?`,
		false},
	{head + "max_tokens: 4\nprompts:\n- {conversation: []}\n",
		"p:6: prompts[0].conversation: empty", false},
	{head + "max_tokens: 4\nprompts:\n- [a]\n", "p:6: prompts[0]: must be text, not a list", false},
	{head + body + "kv_cache_dtypes: [f16, q8_0]\nllamacpp: {cache_type_k: f16}\n",
		"p:7: llamacpp.cache_type_k: cannot be combined with kv_cache_dtype; remove one", true},
	{head + body + "gate:\n  peak_pss_mb: {most: 3}\n", `p:7: unknown field "gate.peak_pss_mb.most"; docs/reference/plan.md lists the fields`, false},
	{head + body + "gate:\n  peak_pss: {max: 3, min: 4}\n", "p:7: gate.peak_pss: min is 4 and max is 3", true},
	{head + body + body, `p:6: mapping key "input_lengths" already defined`, true},
	{head + body + "dtype: *half\n", "p:6: dtype: unknown anchor &half", true},
	{head + body + "x-a: &a {context: 64}\n<<: *b\n", "p:7: unknown anchor &b", true},
	{head + body + "max_token: 64\n", `p:6: unknown field "max_token"; did you mean "max_tokens"?`, false},
	{head + body + "warmup: {launches: 1,\n  tokens: 0}\n", "p:7: warmup.tokens: 0 is too small; use at least 1", false},
	{head + body + "threads: -1\n", "p:6: threads: -1 is too small; use at least 1", false},
	{head + body + "timeout: 3\n", `p:6: timeout: "3" is not a duration such as 90s or 3m`, false},
	{head + body + "timeout: 0s\n", "p:6: timeout: must be a duration such as 3m", true},
	{"name: ../x\nmodel: tiny\n" + body, `p:1: name: "../x" is invalid; use up to 100 letters, digits, dots, dashes and underscores`, false},
	{"name: [p]\nmodel: tiny\n" + body, "p:1: name: must be text, not a list", false},
	{"name: p\nengines: [webllm, webllm]\nmodel: tiny\n" + body, "p:2: engines: duplicate engine webllm", false},
	{head + body + "temperature: 2.5\n", "p:6: temperature: 2.5 is out of range; use 0 (greedy) to 2", false},
	{head + body + "watchdog: 1ms\n", "p:6: watchdog: 1ms is too short; use at least 1s", true},
	{head + body + "check_oom: \"false\"\n", `p:6: check_oom: must be true or false, not "false"`, false},
	{"just text\n", `p:1: must be a group of settings, not "just text"`, false},
	{"", "p: the file is empty; write a plan into it", true},
	{head + body + "---\nname: q\n", "p:7: second document; a file may have only one plan", true},
}

// expandable reads and expands a plan, as the command does.
func expandable(text []byte, file string) error {
	p, err := plan.Parse(text, file, kinds.All...)
	if err == nil {
		_, err = p.Expand()
	}
	return err
}

func TestWrongPlansAreRefused(t *testing.T) {
	validate := schematest.Validator(t, "plan")
	for _, c := range wrong {
		err := expandable([]byte(c.text), "p")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			fault.Of(err) != fault.Usage {
			t.Errorf("%s\nis answered with %v (class %s), want %s", c.text, err, fault.Of(err), c.want)
		}
		if c.unseen {
			continue
		}
		if validate(asJSON(t, []byte(c.text))) == nil {
			t.Errorf("the schema takes\n%s", c.text)
		}
	}
}

// right are valid plans: one for each feature, and the built-in ones.
func right(t testing.TB) []string {
	out := []string{string(plans.Default), string(plans.Init)}
	for _, name := range plans.Names() {
		text, err := plans.Preset(name)
		check.Err(t, err)
		out = append(out, string(text))
	}
	return append(out, features...)
}

var features = []string{
	head + body,
	head + body + "x-anything: [1, {a: b}]\n",
	"x-base: &base {input_lengths: [8], output_lengths: [2, 4]}\nname: p\nmodels:\n- {<<: *base, model: a, dtype: [f16, f32]}\n- {<<: *base, model: b, output_length: 3}\n",
	"model_id: tiny\nengine: webllm\nprompt: hello\noutput_length: 2\ntemperature: 0.0\n",
	"models: tiny\nprompts: [{text: a}, b, {dataset: c.jsonl, field: q, limit: 3}, {conversation: [d, e]}, {trace: f.csv}, {file: g.txt}]\nmax_tokens: [2, 3]\n",
	head + body + "context: 0\n",
	"name: p\nengines: [webllm, 'exec:./e']\nmodel: {name: m, webllm: ID, llamacpp: x.gguf, 'exec:./e': y.gguf}\n" + body,
	"models:\n- tiny\n- {name: m, webllm: ID, ollama: 'm:1b', engines: [webllm, ollama], contexts: [64]}\n" + body,
	head + body + "webllm: {kernels: [mlc, gpu], thread: [page, worker]}\nllamacpp: {gpu_layers: [0, 9], mmap: on}\n",
	head + body + "quantization: null\nuntil_ci: 2.5 %\norder: shuffled\nseed: 18446744073709551615\ncool_down: 1.5s\ncell_timeout: 1h30m\n",
	head + body + "exclude: {engine: webllm, input_lengths: [8]}\ninclude:\n- {model: other, max_tokens: 9, dtype: half}\n- {start: cold}\n",
	head + body + "concurrency: [1, 2, 4]\ntraffic: {requests: 8, goal: {ttft_ms: 100}, start_delay: 10ms}\nisolation: shared\ncache: on\n",
	head + body + "gate: {decode_tps: {min: 20}, vs_baseline: {peak_pss_mb: +3%}, parity: {min_agreement: 99.5%}}\n",
	head + body + "openai: {url: http://127.0.0.1}\nllamacpp: {mmap: off, batch: 3}\nollama: {keep_alive: 3m}\ncheck_oom: false\nparity: true\ntext_of: webllm\n",
	"input_lengths: 2\nmax_tokens: 7\nmodel: tiny\nuntil_ci: {width: 5%, figure: ttft, max_repetitions: 20}\nstart: [cold, warm]\nkv_cache_dtype: [auto, fp8, q4_0]\n",
}

func TestLineEndingsAndEncodings(t *testing.T) {
	want := plan.Bare(parse(t, head+body))
	for _, text := range []string{"\ufeff" + head + body, strings.ReplaceAll(head+body, "\n", "\r\n"),
		"%YAML 1.2\n---\n" + head + body + "...\n",
		"# first\n\n---\n" + head + body, head + strings.Replace(body, "16", "1.6e1", 1),
		head + strings.Replace(body, "4\n", "4 # of each\n", 1),
		strings.TrimSuffix(head+body, "\n")} {
		if p := plan.Bare(parse(t, text)); !reflect.DeepEqual(p, want) {
			t.Errorf("%q is %+v, not %+v", text, p, want)
		}
	}
}

func TestRightPlans(t *testing.T) {
	validate := schematest.Validator(t, "plan")
	for _, text := range right(t) {
		p := parse(t, text)
		written := writtenAndRead(t, p)
		if err := validate(asJSON(t, written)); err != nil {
			t.Errorf("%s\nas it is written: %v", written, err)
		}
		if strings.Contains(text, "&") {
			continue
		}
		if err := validate(asJSON(t, []byte(text))); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// bombs are small documents that would expand to large ones.
func bombs() map[string]string {
	lists := "x-0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 20; i++ {
		lists += fmt.Sprintf("x-%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	merges := "x-0: &a {"
	for i := range 1000 {
		merges += fmt.Sprintf("k%d: 1, ", i)
	}
	merges += "}\ninclude:\n" + strings.Repeat("- {<<: [*a, *a]}\n", 60)
	return map[string]string{
		lists + head + "max_tokens: 4\nprompts: *a19\n":          "p:19: prompts[0]: must be text, not a list",
		lists + head + body + "exclude: *a19\n":                  "exclude[0]: must be a group of settings, not a list",
		merges:                                                   "include[50]: more than 100000 values after expanding aliases",
		"prompts: &a [*a]\n":                                     "p:1: prompts[0]: unknown anchor &a",
		"models: &a {<<: *a}\n":                                  "models: unknown anchor &a",
		head + "prompts: " + strings.Repeat("[", 50_000):         "nested more than 40 levels deep",
		head + "prompts: " + strings.Repeat("- ", 50_000):        "nested more than 40 levels deep",
		strings.Repeat("? ", 50_000):                             "nested more than 40 levels deep",
		strings.Repeat("{a: ", 50_000):                           "nested more than 40 levels deep",
		head + "prompts: " + strings.Repeat("!a ", 50_000) + "b": "nested more than 40 levels deep",
		strings.Repeat("# nothing\n", 200_000):                   "too large: 2000000 bytes; the maximum is 1048576",
	}
}

// Large documents are refused before they are expanded.
func TestBombs(t *testing.T) {
	for text, want := range bombs() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := plan.Parse([]byte(text), "p", kinds.All...)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%.60q: %d bytes were taken to refuse it", text, grown)
		}
	}
}

func TestTooManyCells(t *testing.T) {
	thousand := make([]string, 1000)
	for i := range thousand {
		thousand[i] = fmt.Sprint(i + 2)
	}
	list := "[" + strings.Join(thousand, ", ") + "]\n"
	text := head + "input_lengths: " + list + "output_lengths: " + list + "contexts: " + list
	err := expandable([]byte(text), "p")
	if err == nil || err.Error() != "p: the plan: 2000000000 cells; the maximum is 10000: "+
		"use fewer values, or several plans" {
		t.Error(err)
	}
	text = head + "max_tokens: 4\ninput_lengths: [5000]\nthreads: [1, 2]\ninclude:\n- input_lengths: " + list +
		"  threads: " + list
	err = expandable([]byte(text), "p")
	if err == nil || !strings.HasPrefix(err.Error(), "p:8: include[0]: 1001003 cells; the maximum is 10000: ") {
		t.Error(err)
	}
	p := parse(t, head+body)
	for _, axis := range []string{"contexts", "concurrency", "thread_counts", "input_lengths", "output_lengths"} {
		check.Err(t, p.Set(axis, thousand...))
	}
	if m, err := p.Expand(); err == nil {
		t.Errorf("a plan that is none has %d setups", len(m.Setups))
	}
}

// All plans in the documentation are valid.
func TestPlansInTheDocuments(t *testing.T) {
	root := schematest.Root(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	check.Err(t, err)
	found := 0
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text := check.Read(t, path)
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !regexp.MustCompile(`(?m)^models?:`).MatchString(block[1]) {
				continue // of something else
			}
			found++
			if err := expandable([]byte(block[1]), "plan.yaml"); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block[1])
			}
			if err := schematest.Validator(t, "plan")(asJSON(t, []byte(block[1]))); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d plans in the documents", found)
	}
}

// Sections are read, and written in the same way.
func TestSectionsAreRead(t *testing.T) {
	want := map[string]engine.Section{
		"llamacpp": {"batch_threads": 2, "batch": 256, "ubatch": 64, "cache_type_k": "q8_0", "cache_type_v": "f16",
			"flash_attention": "auto", "mmap": "off", "gpu_layers": 3},
		"ollama": {"url": "http://127.0.0.1:11434", "keep_alive": "10m"},
		"openai": {"url": "http://127.0.0.1:8080/v1", "model": "mouse", "api": "chat", "key_env": "KEY"},
		"webllm": {"adapter": "swiftshader", "kernels": "gpu", "sort": "full"},
	}
	p := parse(t, head+body+"llamacpp:\n  batch_threads: 2\n  batch: 256\n  ubatch: 64\n  cache_type_k: q8_0\n  cache_type_v: f16\n"+
		"  flash_attention: auto\n  mmap: off\n  gpu_layers: 3\nollama: {url: http://127.0.0.1:11434, keep_alive: 10m, gpu: false}\n"+
		"openai: {url: http://127.0.0.1:8080/v1, model: mouse, api: chat, key_env: KEY}\n"+
		"adapter: swiftshader\nkernels: gpu\nsort: full\n")
	text, err := p.YAML()
	check.Err(t, err)
	for _, p := range []plan.Plan{p, parse(t, string(text))} {
		if !maps.EqualFunc(p.Sections, want, maps.Equal) {
			t.Errorf("%+v, want %+v", p.Sections, want)
		}
	}
}

func TestSectionsAreRefused(t *testing.T) {
	for section, want := range map[string]string{
		"llamacpp:\n  batch: -1":                      "p:7: llamacpp.batch: -1 is negative; use a positive number, or 0: llama.cpp's default",
		"llamacpp:\n  gpu_layers: -2":                 "p:7: llamacpp.gpu_layers: -2",
		"llamacpp:\n  cache_type_k: f99":              `p:7: llamacpp.cache_type_k: unknown value "f99"; use f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl`,
		"llamacpp:\n  flash_attention: yes":           `p:7: llamacpp.flash_attention: unknown value "yes"; use off, on or auto`,
		"llamacpp:\n  mmap: sometimes":                `p:7: llamacpp.mmap: unknown value "sometimes"; use on or off`,
		"llamacpp:\n  cache_type_v: q8_0":             "p:7: llamacpp.cache_type_v: q8_0 needs flash attention",
		"llamacpp:\n  threads: 1":                     `p:7: unknown field "llamacpp.threads"; did you mean "batch_threads"?`,
		"ollama:\n  kv_type: q8_0\n  gpu: tru":        `p:8: ollama.gpu: must be true or false, not "tru"`,
		"ollama:\n  keep_alive: 2m59s":                "p:7: ollama.keep_alive: 2m59s is less than the timeout of 3m0s",
		"ollama:\n  keep_alive: \"179\"":              "p:7: ollama.keep_alive: 179 is less",
		"ollama:\n  keep_alive: \"-1\"":               "",
		"ollama:\n  keep_alive: \"180\"":              "",
		"ollama:\n  kv_type: f32":                     `p:7: ollama.kv_type: unknown value "f32"; use f16, q8_0 or q4_0`,
		"ollama:\n  url: http://x\n  kv_type: f16":    "omit one of them",
		"ollama:\n  url: http://x\n  gpu: true":       "omit one of them",
		"ollama:\n  adress: http://x":                 `p:7: unknown field "ollama.adress"; docs/reference/plan.md lists the fields`,
		"openai:\n  api: chat":                        "p:6: openai.url: missing",
		"openai:\n  url: http://x\n  api: chatter":    `p:8: openai.api: unknown value "chatter"; use completions or chat`,
		"openai:\n  url: http://x\n  key: sk-secret":  `p:8: unknown field "openai.key"; did you mean "key_env"?`,
		"adapter: dx12":                               `p:6: adapter: unknown value "dx12"; use auto, gpu, swiftshader or lavapipe`,
		"kernels: gpu\nmodel_lib: lib.wasm":           "p:7: model_lib: names a compiled library",
		"webllm_version: 0.2.86\nwebllm_bundle: x.js": "p:7: webllm_bundle: cannot be combined with webllm_version; remove one",
	} {
		err := expandable([]byte(head+body+section+"\n"), "p")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "p:") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
}
