package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/bench/dryrun"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/models/gguf"
)

// change is a plan, as lines that replace those of the usual one, and what is added to it. A line "-x" removes x.
type change struct{ rest, added string }

// resolvedMoves are changes that show before a launch: in the cells, in a prediction, or in an engine's settings.
var resolvedMoves = map[string]change{
	"engines":                   {"", "engines: [llamacpp, ollama]"},
	"model":                     {"", "model: other.gguf"},
	"models.model":              {"-model\nmodels: [tiny]", "models: [other.gguf]"},
	"models.engines":            {"-model\nmodels: [tiny]", "models: [{model: tiny, engines: [ollama, llamacpp]}]"},
	"prompts":                   {"", "prompts: [a, b]"},
	"prompts.dataset":           {"", "prompts: [{dataset: a.jsonl}]"},
	"prompts.limit":             {"prompts: [{dataset: a.jsonl}]", "prompts: [{dataset: a.jsonl, limit: 1}]"},
	"prompts.trace":             {"", "prompts: [{trace: a.csv}]"},
	"prompts.conversation":      {"", "prompts: [{conversation: [a, b]}]"},
	"max_tokens":                {"", "max_tokens: 8"},
	"context":                   {"", "context: 256"},
	"warmup.launches":           {"", "warmup: {launches: 2}"},
	"repetitions":               {"", "repetitions: 2"},
	"isolation":                 {"repetitions: 3", "isolation: reused"},
	"cache":                     {"", "cache: on"},
	"dtype":                     {"", "dtype: f16"},
	"threads":                   {"", "threads: 2"},
	"kv_cache_dtype":            {"", "kv_cache_dtype: q8_0"},
	"input_lengths":             {"-prompts\ninput_lengths: [8]", "input_lengths: [8, 16]"},
	"output_lengths":            {"-max_tokens\noutput_lengths: [4]", "output_lengths: [4, 8]"},
	"batch_sizes":               {"", "batch_sizes: [2]"},
	"concurrency":               {"", "concurrency: [2]"},
	"dtypes":                    {"", "dtypes: [f32, f16]"},
	"kv_cache_dtypes":           {"", "kv_cache_dtypes: [f16, q8_0]"},
	"contexts":                  {"", "contexts: [256, 512]"},
	"thread_counts":             {"", "thread_counts: [1, 2]"},
	"temperatures":              {"", "temperatures: [0, 0.7]"},
	"weights":                   {"engines: [webllm]", "weights: f32"},
	"storage":                   {"engines: [webllm]", "storage: opfs"},
	"storages":                  {"engines: [webllm]", "storages: [cache, opfs]"},
	"stored":                    {"engines: [webllm]", "stored: [empty, filled]"},
	"starts":                    {"", "starts: [warm, cold]"},
	"include":                   {"", "include: [{engine: llamacpp, output_length: 9}]"},
	"exclude":                   {"prompts: [a, b]", "exclude: [{prompt: 2}]"},
	"traffic.concurrency":       {traffic("requests: 4"), traffic("requests: 4, concurrency: 2")},
	"traffic.requests":          {traffic("requests: 4"), traffic("requests: 5")},
	"traffic.turns":             {traffic("requests: 4"), traffic("requests: 4, turns: 2")},
	"traffic.mix.input_length":  {mix("name: a"), mix("name: a, input_length: 80")},
	"traffic.mix.output_length": {mix("name: a"), mix("name: a, output_length: 9")},
	"tensor_parallel_size":      {onServer + sizes, "tensor_parallel_size: 4"},
	"quantization":              {onServer + sizes, "quantization: awq"},
	"model_params":              {onServer, "model_params: 2e9"},
	"num_layers":                {onServer + sizes, "num_layers: 32"},
	"num_heads":                 {onServer + sizes, "num_heads: 32"},
	"head_dim":                  {onServer + sizes, "head_dim: 128"},
	"hidden_size":               {onServer + "model_params: 1e9\nnum_layers: 16\nnum_heads: 16\n", "hidden_size: 2048"},
	"llamacpp.batch":            {"", "llamacpp: {batch: 64}"},
	"llamacpp.batch_threads":    {"", "llamacpp: {batch_threads: 2}"},
	"llamacpp.cache_type_k":     {"", "llamacpp: {cache_type_k: f16}"},
	"llamacpp.cache_type_v":     {"", "llamacpp: {cache_type_v: f16}"},
	"llamacpp.flash_attention":  {"", "llamacpp: {flash_attention: on}"},
	"llamacpp.gpu_layers":       {"", "llamacpp: {gpu_layers: 1}"},
	"llamacpp.mmap":             {"", "llamacpp: {mmap: off}"},
	"llamacpp.ubatch":           {"", "llamacpp: {ubatch: 64}"},
	"ollama.gpu":                {"engines: [ollama]", "ollama: {gpu: true}"},
	"ollama.kv_type":            {"engines: [ollama]", "ollama: {kv_type: q8_0}"},
	"ollama.url":                {"engines: [ollama]", "ollama: {url: http://127.0.0.1:1}"},
	"huggingface.device":        {"engines: [huggingface]", "huggingface: {device: cuda}"},
	"huggingface.device_map":    {"engines: [huggingface]", "huggingface: {device_map: auto}"},
	"huggingface.attention":     {"engines: [huggingface]", "huggingface: {attention: eager}"},
	"huggingface.compile":       {"engines: [huggingface]", "huggingface: {compile: true}"},
	"transformersjs.backend":    {"engines: [transformersjs]", "transformersjs: {backend: webgpu}"},
	"openai.url":                {onServer, "openai: {url: http://127.0.0.1:1}"},
	"openai.model":              {onServer, "openai: {url: URL, model: other}"},
	"models.model_params": {onServer + "-model\nmodels: [{model: served:m, model_params: 1e9}]",
		"models: [{model: served:m, model_params: 2e9}]"},
}

// launchedMoves are changes that show when an engine runs: in what it is asked and when, or in how launches end.
var launchedMoves = map[string]change{
	"chat":                     {"model: chat.gguf", "chat: true"},
	"name":                     {"", "name: other"},
	"prompts.text":             {"", "prompts: [{text: another}]"},
	"prompts.file":             {"", "prompts: [{file: a.csv}]"},
	"prompts.field":            {"prompts: [{dataset: a.jsonl}]", "prompts: [{dataset: a.jsonl, field: other}]"},
	"warmup.tokens":            {"", "warmup: {launches: 0, tokens: 3}"},
	"timeout":                  {"prompts: [sleep]", "timeout: 1s"},
	"cell_timeout":             {"prompts: [sleep]\nrepetitions: 2", "timeout: 4s\ncell_timeout: 4s"},
	"run_timeout":              {"prompts: [sleep]", "run_timeout: 1s"},
	"watchdog":                 {"prompts: [sleep]", "watchdog: 2s"},
	"order":                    {"prompts: [a, b]\nrepetitions: 2", "order: grouped"},
	"seed":                     {"prompts: [a, b, c, d]\norder: shuffled", "seed: 3"},
	"order_seed":               {"prompts: [a, b, c, d]\norder: shuffled", "order_seed: 3"},
	"cool_down":                {"repetitions: 2", "cool_down: 4s"},
	"temperature":              {"", "temperature: 0.7"},
	"until_ci.width":           {"repetitions: 6", "until_ci: {width: 1%, max_repetitions: 8}"},
	"until_ci.figure":          {untilCI("decode_tps", 8), untilCI("peak_pss_mb", 8)},
	"until_ci.max_repetitions": {untilCI("decode_tps", 8), untilCI("decode_tps", 9)},
	"reference_cell":           {"contexts: [256, 512]", "reference_cell: {context: 512}"},
	"parity":                   {"engines: [ llamacpp ]", "parity: true"},
	"traffic.arrivals":         {traffic("rate: 5, requests: 4, arrivals: constant"), traffic("rate: 5, requests: 4")},
	"traffic.rate":             {traffic("rate: 9, requests: 3, arrivals: constant"), traffic("rate: 1, requests: 3, arrivals: constant")},
	"traffic.start_delay":      {traffic("concurrency: 2, requests: 2"), traffic("concurrency: 2, requests: 2, start_delay: 2s")},
	"traffic.ramp":             {traffic("rate: 5, requests: 3, arrivals: constant"), traffic("rate: 5, requests: 3, arrivals: constant, ramp: 6s")},
	"traffic.seed":             {traffic("rate: 2, requests: 3"), traffic("rate: 2, requests: 3, seed: 7")},
	"traffic.mix.name":         {mix("name: a"), mix("name: b")},
	"traffic.mix.share":        {mix("name: a, share: 1, prompt: x}, {name: b, share: 9"), mix("name: a, share: 9, prompt: x}, {name: b, share: 1")},
	"traffic.mix.prompt":       {mix("name: a"), mix("name: a, prompt: longer")},
	"traffic.goal.ttft_ms":     {traffic("requests: 2"), traffic("requests: 2, goal: {ttft_ms: 0.001}")},
	"traffic.goal.tpot_ms":     {traffic("requests: 2"), traffic("requests: 2, goal: {tpot_ms: 0.001}")},
	"traffic.goal.e2e_ms":      {traffic("requests: 2"), traffic("requests: 2, goal: {e2e_ms: 0.001}")},
	"gate":                     {"", "gate: {peak_pss_mb: {max: 0.001}}"},
	"ollama.keep_alive":        {onOllama, "ollama: {url: URL, keep_alive: 20m}"},
	"openai.api":               {onServer, "openai: {url: URL, api: chat}"},
	"openai.key_env":           {onServer, "openai: {url: URL, key_env: A_KEY}"},
	"llamacpp.server":          {"engines: [llamacpp]", "llamacpp: {server: simd128}"},
	"webllm.browser":           {"engines: [webllm]", "webllm: {browser: chromium}"},
	"webllm.adapter":           {"engines: [webllm]", "webllm: {adapter: lavapipe}"},
	"webllm.power_preference":  {"engines: [webllm]", "webllm: {power_preference: low-power}"},
	"webllm.kernels":           {"engines: [webllm]", "webllm: {kernels: gpu}"},
	"webllm.requantize":        {"engines: [webllm]", "webllm: {requantize: q4_0}"},
	"webllm.sort":              {"engines: [webllm]", "webllm: {sort: full}"},
	"webllm.thread":            {"engines: [webllm]", "webllm: {thread: worker}"},
	"wllama.browser":           {"engines: [wllama]", "wllama: {browser: chromium}"},
	"wllama.adapter":           {"engines: [wllama]", "wllama: {adapter: lavapipe}"},
	"wllama.backend":           {"engines: [wllama]", "wllama: {backend: wasm}"},
	"wllama.batch":             {"engines: [wllama]", "wllama: {batch: 64}"},
	"wllama.cache_type_k":      {"engines: [wllama]", "wllama: {cache_type_k: f16}"},
	"wllama.cache_type_v":      {"engines: [wllama]", "wllama: {cache_type_v: f16}"},
	"wllama.flash_attention":   {"engines: [wllama]", "wllama: {flash_attention: auto}"},
	"wllama.power_preference":  {"engines: [wllama]", "wllama: {power_preference: low-power}"},
	"wllama.thread":            {"engines: [wllama]", "wllama: {thread: worker}"},
	"wllama.ubatch":            {"engines: [wllama]", "wllama: {ubatch: 64}"},

	"transformersjs.browser":          {"engines: [transformersjs]", "transformersjs: {browser: chromium}"},
	"transformersjs.adapter":          {onWebGPU("swiftshader"), onWebGPU("lavapipe")},
	"transformersjs.power_preference": {"engines: [transformersjs]", "transformersjs: {power_preference: low-power}"},
	"transformersjs.thread":           {"engines: [transformersjs]", "transformersjs: {thread: worker}"},
}

func onWebGPU(adapter string) string {
	return "engines: [transformersjs]\ntransformersjs: {backend: webgpu, adapter: " + adapter + "}"
}

func traffic(text string) string { return "traffic: {" + text + "}" }
func mix(kind string) string     { return traffic("requests: 10, mix: [{" + kind + "}]") }
func untilCI(figure string, most int) string {
	return fmt.Sprintf("repetitions: 6\nuntil_ci: {width: 5%%, figure: %s, max_repetitions: %d}", figure, most)
}

const (
	onOllama = "engines: [ollama]\nmodel: served:m\ncontext: 512\nollama: {url: URL}\n"
	onServer = "engines: [openai]\nmodel: served:m\ncontext: 512\nopenai: {url: URL}\n"
	sizes    = "num_layers: 16\nnum_heads: 16\nhead_dim: 64\nhidden_size: 1024\nmodel_params: 1e9\n"
)

// elsewhere are fields that other tests show to do something.
var elsewhere = map[string]string{"check_oom": "TestOutOfMemoryIsRefused", "start": "TestEvictAndLoad",
	"container_name": "TestEnginesInContainer",
	"allow_fallback": "TestFallbackIsAllowed", "openai.device": "TestStatedDevice",
	"traffic.loop": "TestWhenRequestsAreSent", "text_of": "TestTextOf",
	"quality": "TestQualityOfTinyModel", "quality_of": "TestQualityOfOneEngine",
	"gpu_memory_utilization": "TestSettingsBecomeArguments", "vllm.args": "TestSettingsBecomeArguments",
	"vllm.kv_cache_mib": "TestSizeOfKVCache", "sglang.args": "TestSettingsBecomeArguments",
	"server.command": "TestCommandWithChildren", "server.template": "TestConformance",
	"server.args": "TestStartsThatFail",
	"server.api":  "TestChat",
	"check":       "TestScoreCheckWithoutWarmup", "check_reference": "TestReferenceChecksOtherModels",
	"webllm.model_lib":     "TestGivenLibraryAndBundleAreNamed",
	"webllm.webllm_bundle": "TestGivenLibraryAndBundleAreNamed"}

// Every field of a plan does something: changing it changes what engines are asked, the cells, a prediction or how a
// run ends, not only the plan that a record repeats.
func TestEveryPlanFieldDoesSomething(t *testing.T) {
	lightTest(t)
	fields := fieldNames("", reflect.TypeFor[plan.Plan]())
	for _, k := range kinds.All {
		if k.Config == nil {
			continue
		}
		for _, f := range k.Config().Fields() {
			if name := k.Section + "." + f.Key; f.Key != "" && !slices.Contains(fields, name) {
				fields = append(fields, name)
			}
		}
	}
	for _, name := range fields {
		_, before := resolvedMoves[name]
		_, then := launchedMoves[name]
		if !before && !then && elsewhere[name] == "" {
			t.Errorf("no test shows that %s does anything", name)
		}
	}
	t.Chdir(walkFolder(t))
	for name, c := range resolvedMoves {
		t.Run(name, func(t *testing.T) {
			if a, b := resolvedTo(t, walked(c.rest)), resolvedTo(t, walked(c.rest+"\n"+c.added)); a == b {
				t.Errorf("%s does nothing:\n%s", c.added, a)
			}
		})
	}
}

// following returns a plan and flags that follow it.
func following(t *testing.T, text string) (*runFlags, plan.Plan) {
	t.Helper()
	p, err := plan.Parse([]byte(text), "plan.yaml", kinds.All...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f := &runFlags{out: t.TempDir(), json: true}
	check(t, f.follow(p, func(string) bool { return false }))
	return f, p
}

// resolver resolves a plan.
func resolver(t testing.TB, f *runFlags, p plan.Plan, dry bool) *resolve.Resolver {
	t.Helper()
	r, err := f.resolver(p, dry, func(string, string) {}, io.Discard)
	check(t, err)
	return r
}

// expanded returns the cells of a plan.
func expanded(t testing.TB, p plan.Plan) *plan.Matrix {
	t.Helper()
	m, err := p.Expand()
	check(t, err)
	return m
}

// served is the address of a server that lists a model.
func served(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"data":[{"id":%q}]}`, name)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// fieldNames are the fields of a struct, and of those within it.
func fieldNames(path string, of reflect.Type) (out []string) {
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		known := name != "gate" && inner.Kind() == reflect.Struct && inner.NumField() > 0
		if !known || name == "prompts" {
			out = append(out, path+name)
		}
		if known && name != "models" { // whose fields are those of the plan
			out = append(out, fieldNames(path+name+".", inner)...)
		}
	}
	return out
}

// walked is the usual plan with other lines.
func walked(lines string) string {
	keys := []string{"name", "engines", "model", "prompts", "max_tokens", "repetitions", "warmup"}
	text := map[string]string{"name": "name: walk", "engines": "engines: [llamacpp]", "model": "model: tiny",
		"prompts": "prompts: [a]", "max_tokens": "max_tokens: 4", "repetitions": "repetitions: 1",
		"warmup": "warmup: {launches: 0, tokens: 1}"}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "-"), ":")
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		if text[key] = line; strings.HasPrefix(line, "-") {
			text[key] = ""
		}
	}
	var out string
	for _, key := range keys {
		out += text[key] + "\n"
	}
	return out
}

// walkFolder has the files that the plans name.
func walkFolder(t *testing.T) string {
	dir := t.TempDir()
	put(t, dir, "a.jsonl", `{"prompt":"a","other":"b"}`+"\n"+`{"prompt":"c","other":"d"}`+"\n")
	put(t, dir, "a.csv", "time,input_tokens,output_tokens\n0,20,20\n1,20,20\n")
	path := tinyOf(t).Path
	rewrite(t, path, filepath.Join(dir, "other.gguf"))
	rewrite(t, path, filepath.Join(dir, "chat.gguf"), gguf.Entry{Key: "tokenizer.chat_template", Value: chatTemplate})
	return dir
}

// resolvedTo is what a plan is resolved to: its cells without what they repeat of the plan, and the settings with which
// engines would start.
func resolvedTo(t *testing.T, text string) string {
	t.Helper()
	f, p := following(t, strings.ReplaceAll(text, "URL", served(t, "m")))
	r := resolver(t, f, p, true)
	of, err := r.Resolve(t.Context())
	check(t, err)
	var out strings.Builder
	for _, c := range dryrun.Of(of).Lines {
		line, err := json.Marshal(c)
		check(t, err)
		shown := decoded[map[string]any](t, string(line))
		for name := range strings.FieldsSeq("dtype kv_cache_dtype start threads context model webllm_version") {
			delete(shown, name)
		}
		fmt.Fprint(&out, shown)
		m := of.Chosen[c.Setup-1].Model
		own := f.following(of.Setups[c.Setup-1].Plan)
		e := own.chosen().Engine(c.Engine)
		if s, ok := e.(engine.Settled); ok {
			fmt.Fprintf(&out, " %v %+v %s", s.Settings(m), e.Caps(), m.Path)
		}
		out.WriteString("\n")
	}
	return out.String()
}
