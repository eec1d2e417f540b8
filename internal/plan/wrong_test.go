package plan_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/schematest"
)

// body follows head; its lines are 4 and 5.
const body = "input_lengths: [8, 16]\nmax_tokens: 4\n"

// wrong are plans that nothing comes of, with what is said of them; those that a schema can see are refused by it, too.
var wrong = []struct {
	text   string
	want   string
	unseen bool // by a schema: it is a matter of several fields, or of what is not JSON
}{
	{head + body + "input_length: [4]\n", "p line 6: input_length: input_lengths says it too; leave one out", true},
	{head + body + "inputs: [4]\n", "p line 6: inputs: unknown field; did you mean input_lengths?", false},
	{head + body + "dtype: f32\ndtypes: [f16]\n", "p line 7: dtypes: dtype says it too", true},
	{head + body + "dtypes: [f32, float32]\n", `p line 6: dtypes[1]: "f32" is there already`, true},
	{head + body + "dtypes: [f32, q4]\n", `p line 6: dtypes[1]: "q4", use f32, f16 or bf16`, false},
	{head + body + "kv_cache_dtype: int4\n", `p line 6: kv_cache_dtype: "int4", use f32, f16`, false},
	{head + body + "contexts:\n- 64\n- 1\n", "p line 8: contexts[1]: 1, at least 2 is needed", false},
	{head + body + "contexts: many\n", `p line 6: contexts: "many" stands where a whole number is wanted`, false},
	{head + body + "contexts: {a: 1}\n", "p line 6: contexts: a group of settings stands where a list is wanted",
		false},
	{head + body + "thread_counts: [0]\n", "p line 6: thread_counts[0]: 0, from 1 to 10000000 are possible", false},
	{head + body + "concurrency: [2, 4,\n  2]\n", "p line 7: concurrency[2]: 2 is there already", false},
	{head + body + "concurrency: -1\n", "p line 6: concurrency: -1, from 1 to 10000 are possible", false},
	{head + body + "batch_sizes: 2.5\n", `p line 6: batch_sizes: "2.5" stands where a whole number is wanted`, false},
	{head + body + "batch_sizes: [\"2\"]\n", `p line 6: batch_sizes[0]: "2" stands where a whole number is wanted`,
		false},
	{head + body + "starts: [cold, luke]\n", `p line 6: starts[1]: "luke", use cold or warm`, false},
	{head + body + "starts: [cold]\nisolation: shared\n",
		"p line 7: isolation: shared has one launch for several repetitions", true},
	{head + body + "output_lengths: [2]\n", "p line 6: output_lengths: max_tokens says it too", true},
	{head + "input_lengths: [0]\nmax_tokens: 4\n", "p line 4: input_lengths[0]: 0, from 1 to 10000000 are possible",
		false},
	{head + "input_lengths: [8]\nmax_tokens: -4\n", "p line 5: max_tokens: -4, at least 1 is needed", false},
	{head + "input_lengths: [8]\n", "p: max_tokens: 0, at least 1 is needed", true},
	{head + "max_tokens: 4\n", "p: prompts: there is none; give some, or input_lengths", true},
	{head + body + "prompts: [a]\n", "p line 4: input_lengths: prompts say what is asked; leave one out", true},
	{head + body + "order: random\n", `p line 6: order: "random", use interleaved, shuffled or grouped`, false},
	{head + body + "cache: yes\n", `p line 6: cache: "yes", use off or on`, false},
	{head + body + "seed: -1\n", `p line 6: seed: "-1" stands where a whole number, 0 or more, is wanted`, false},
	{head + body + "cool_down: -3s\n", "p line 6: cool_down: a duration such as 10s is needed", false},
	{head + body + "cell_timeout: 1m\n", "p line 6: cell_timeout: 1m0s is less than the timeout of one launch, 3m0s",
		true},
	{head + body + "repetitions: 0\n", "p line 6: repetitions: 0, at least 1 is needed", false},
	{head + body + "until_ci: 5\n", `p line 6: until_ci: "5" is not a percentage such as 5%`, false},
	{head + body + "until_ci: 0%\n", "p line 6: until_ci: 0%, a percentage from more than 0% to 100% is needed", true},
	{head + body + "until_ci: {figure: decode_tps}\n", "p line 6: until_ci: 0%, a percentage", false},
	{head + body + "until_ci:\n  width: 5%\n  figure: decode\n",
		`p line 8: until_ci.figure: there is no figure "decode"`, true},
	{head + body + "until_ci:\n  width: 5%\n  max_repetitions: 2\n",
		"p line 8: until_ci.max_repetitions: 2 is less than repetitions, which are 6", true},
	{head + body + "reference: weblm\n", `p line 6: reference: "weblm" is none of the engines (webllm, llamacpp)`, true},
	{head + body + "exclude: [{engine: weblm}]\n",
		"p line 6: exclude[0].engine: no cell has weblm; there are webllm, llamacpp", true},
	{head + body + "exclude:\n- engine: webllm\n- input_length: 9\n",
		"p line 8: exclude[1].input_length: no cell has 9; there are 8, 16", true},
	{head + body + "exclude:\n- engin: webllm\n", "p line 7: exclude[0].engin: unknown axis; did you mean engine?",
		false},
	{head + body + "exclude: [{}]\n", "p line 6: exclude[0]: it names no axis", false},
	{head + body + "exclude: [{engine: []}]\n", "p line 6: exclude[0].engine: it has no value", false},
	{head + body + "exclude: [{prompt: 1}]\n",
		"p line 6: exclude[0].prompt: there are no prompts but those of input_lengths; name an input_length", true},
	{head + body + "exclude: [{dtype: f16}]\n",
		"p line 6: exclude[0].dtype: no cell has f16; there are only one that is not named", true},
	{head + body + "exclude: [{engine: [webllm, llamacpp]}]\n", "p line 6: exclude: it leaves no cell", true},
	{head + body + "include: [{context: [32, 64]}]\n", "p line 6: include[0].context: it is no axis of this plan",
		true},
	{head + body + "include: [{input_length: -1}]\n",
		"p line 6: include[0].input_length: -1, from 1 to 10000000 are possible", true},
	{head + body + "include: {input_length: x}\n",
		`p line 6: include.input_length: "x" stands where a whole number is wanted`, true},
	{head + body + "models: [a]\n", "p line 6: models: model says it too; leave one out", true},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- b\n- a\n" + body, "p line 6: models[2]: a is named twice", true},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- {engines: [x]}\n" + body, "p line 5: models[1].model: none is named",
		false},
	{"name: p\nengines: [webllm]\nmodels:\n- a\n- [b]\n" + body,
		"p line 5: models[1]: a list stands where a model's name", false},
	{"name: p\nmodels:\n- model: a\n  num_layer: 3\n" + body,
		"p line 4: models[0].num_layer: unknown field; did you mean num_layers?", false},
	{"name: p\nmodels:\n- model: a\n  input_lengths: [8, -1]\nmax_tokens: 4\n",
		"p line 4: models[0].input_lengths[1]: -1, from 1", false},
	{"name: p\nmodels:\n- model: a\n  gpu_memory_utilization: 90\n" + body,
		"p line 4: models[0].gpu_memory_utilization: 90, a part of all", false},
	{"name: p\nmodels:\n- model: a\n  model_params: many\n" + body,
		`p line 4: models[0].model_params: "many" stands where a number is wanted`, false},
	{"name: p\nengines: []\nmodel: tiny\n" + body, "p line 2: engines: none is named", false},
	{"name: p\nengines: [webllm]\n" + body, "p: model: none is named; `tiny` needs no file", false},
	{"name: p\nengines: [llamacpp]\nmodel: tiny\nwebllm_versions: [a, b]\n" + body,
		"p line 4: webllm_versions: none of the engines has to do with it", true},
	{"name: p\nengines: [webllm]\nmodel: tiny\nthreads: [1, 2]\n" + body,
		"p line 4: threads: none of the engines has to do with it", true},
	{head + "max_tokens: 4\nprompts:\n- a\n- ''\n", "p line 7: prompts[1]: it is empty", false},
	{head + "max_tokens: 4\nprompts:\n- a\n- {file: x, dataset: y}\n- b\n",
		"p line 7: prompts[1].dataset: file says what is asked, too", false},
	{head + "max_tokens: 4\nprompts:\n- {text: x, file: y}\n", "p line 6: prompts[0]: text says what is asked", false},
	{head + "max_tokens: 4\nprompts:\n- {limit: 3}\n", "p line 6: prompts[0].file: it has no prompt", false},
	{head + "max_tokens: 4\nprompts:\n- {file: x, limit: 3}\n", "p line 6: prompts[0].limit: a file has none", false},
	{head + "max_tokens: 4\nprompts:\n- {data: x}\n", "p line 6: prompts[0].data: unknown field; did you mean dataset?",
		false},
	{head + "max_tokens: 4\nprompts:\n- {conversation: []}\n",
		"p line 6: prompts[0].conversation: nothing is said in it", false},
	{head + "max_tokens: 4\nprompts:\n- [a]\n", "p line 6: prompts[0]: a list stands where a text is wanted", false},
	{head + body + "kv_cache_dtypes: [f16, q8_0]\nllamacpp: {cache_type_k: f16}\n",
		"p line 7: llamacpp.cache_type_k: kv_cache_dtype says it too", true},
	{head + body + "gate:\n  peak_pss_mb: {most: 3}\n", "p line 7: gate.peak_pss_mb.most: unknown field", false},
	{head + body + "gate:\n  peak_pss: {max: 3, min: 4}\n", "p line 7: gate.peak_pss: min is 4 and max is 3", true},
	{head + body + body, `p line 6: mapping key "input_lengths" already defined`, true},
	{head + body + "dtype: *half\n", "p line 6: dtype: there is no anchor &half", true},
	{head + body + "x-a: &a {context: 64}\n<<: *b\n", "p line 7: there is no anchor &b", true},
	{"just text\n", "p line 1: \"just text\" stands where a group of settings is wanted", false},
	{"", "p: it is empty", true},
	{head + body + "---\nname: q\n", "p line 7: a second document begins", true},
}

func TestWrongPlans(t *testing.T) {
	validate := schematest.Validator(t, "plan")
	for _, c := range wrong {
		_, err := plan.Parse([]byte(c.text), "p", kinds.All...)
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

// right are plans, one for each thing that can be said.
var right = []string{
	head + body,
	head + body + "x-anything: [1, {a: b}]\n",
	"x-base: &base {input_lengths: [8], output_lengths: [2, 4]}\nname: p\nmodels:\n- {<<: *base, model: a, dtype: [f16, f32]}\n- {<<: *base, model: b, output_length: 3}\n",
	"model_id: tiny\nengine: webllm\nprompt: hello\noutput_length: 2\ntemperature: 0.0\n",
	"models: tiny\nprompts: [{text: a}, b, {dataset: c.jsonl, field: q, limit: 3}, {conversation: [d, e]}, {trace: f.csv}, {file: g.txt}]\nmax_tokens: [2, 3]\n",
	head + body + "context: 0\n",
	head + body + "quantization: null\nuntil_ci: 2.5 %\norder: shuffled\nseed: 18446744073709551615\ncool_down: 1.5s\ncell_timeout: 1h30m\n",
	head + body + "exclude: {engine: webllm, input_lengths: [8]}\ninclude:\n- {model: other, max_tokens: 9, dtype: half}\n- {start: cold}\n",
	head + body + "concurrency: [1, 2, 4]\ntraffic: {requests: 8, goal: {ttft_ms: 100}, start_delay: 10ms}\nisolation: shared\ncache: on\n",
	head + body + "gate: {decode_tps: {min: 20}, vs_baseline: {peak_pss_mb: +3%}, parity: {min_agreement: 99.5%}}\n",
	head + body + "openai: {url: http://127.0.0.1}\nllamacpp: {mmap: off, batch: 3}\nollama: {keep_alive: 3m}\ncheck_oom: false\nparity: true\nreference: webllm\n",
	"input_lengths: 2\nmax_tokens: 7\nmodel: tiny\nuntil_ci: {width: 5%, figure: ttft, max_repetitions: 20}\nstart: [cold, warm]\nkv_cache_dtype: [auto, fp8, q4_0]\n",
}

// What editors and other systems put into files makes no difference.
func TestFilesOfOtherSystems(t *testing.T) {
	want := parse(t, head+body)
	for _, text := range []string{"\ufeff" + head + body, strings.ReplaceAll(head+body, "\n", "\r\n"),
		"%YAML 1.2\n---\n" + head + body + "...\n",
		"# first\n\n---\n" + head + body, head + strings.Replace(body, "16", "1.6e1", 1),
		head + strings.Replace(body, "4\n", "4 # of each\n", 1),
		strings.TrimSuffix(head+body, "\n")} {
		if p := parse(t, text); !reflect.DeepEqual(p, want) {
			t.Errorf("%q is %+v, not %+v", text, p, want)
		}
	}
}

func TestRightPlans(t *testing.T) {
	validate := schematest.Validator(t, "plan")
	for _, text := range right {
		p := parse(t, text)
		written, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := plan.Parse(written, "p.yaml", kinds.All...)
		p.DefaultEngines = false // the plan that is written names them
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%s\nis written\n%s\nand read again as %+v, not as %+v: %v", text, written, again, p, err)
		}
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

// bombs are small documents that would be large ones.
func bombs() map[string]string {
	lists, merges := "x-0: &a0 [x, x, x, x, x, x, x, x, x]\n", "include:\n- &m0 {engine: x}\n"
	for i := 1; i < 20; i++ {
		lists += fmt.Sprintf("x-%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
		merges += fmt.Sprintf("- &m%d {<<: [*m%d, *m%d, *m%d]}\n", i, i-1, i-1, i-1)
	}
	return map[string]string{
		lists + head + "max_tokens: 4\nprompts: *a19\n":          "prompts[0]: a list stands where a text is wanted",
		lists + head + body + "exclude: *a19\n":                  "exclude[0]: a list stands where a group of settings is wanted",
		merges:                                                   "there are more than 100000 values, with what aliases repeat",
		"prompts: &a [*a]\n":                                     "prompts[0]: a list stands where a text is wanted",
		"models: &a {<<: *a}\n":                                  "a group is merged into itself",
		head + "prompts: " + strings.Repeat("[", 50_000):         "it is nested more than 40 deep",
		head + "prompts: " + strings.Repeat("- ", 50_000):        "it is nested more than 40 deep",
		strings.Repeat("? ", 50_000):                             "it is nested more than 40 deep",
		strings.Repeat("{a: ", 50_000):                           "it is nested more than 40 deep",
		head + "prompts: " + strings.Repeat("!a ", 50_000) + "b": "it is nested more than 40 deep",
		strings.Repeat("# nothing\n", 200_000):                   "it has 2000000 bytes; at most 1048576 are read",
	}
}

// What a document would come to is refused before it is made: a few megabytes are more than enough to say so.
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
	_, err := plan.Parse([]byte(text), "p", kinds.All...)
	if err == nil || err.Error() != "p line 6: contexts: 2000000000 cells are more than 10000: "+
		"leave out values of an axis, or make several plans" {
		t.Error(err)
	}
	text = head + "max_tokens: 4\ninput_lengths: [5000]\nthreads: [1, 2]\ninclude:\n- input_lengths: " + list +
		"  threads: " + list
	_, err = plan.Parse([]byte(text), "p", kinds.All...)
	if err == nil || !strings.HasPrefix(err.Error(), "p line 8: include[0]: 1001003 cells are more than 10000") {
		t.Error(err)
	}
	p := parse(t, head+body)
	for _, axis := range []string{"contexts", "concurrency", "thread_counts", "input_lengths", "output_lengths"} {
		if err := p.Set(axis, thousand...); err != nil {
			t.Fatal(err)
		}
	}
	for range p.Setups() {
		t.Fatal("a plan that is none has a setup")
	}
}
