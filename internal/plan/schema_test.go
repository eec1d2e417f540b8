package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"llmparity/assets/plans"
	"llmparity/internal/plan"
	"llmparity/internal/schematest"
)

var update = flag.Bool("update", false, "write the published schemas anew")

// list is one value, or a list of them.
func list(of string) string {
	return `{"oneOf": [` + of + `, {"type": "array", "items": ` + of + `, "minItems": 1, "uniqueItems": true}]}`
}

func numbers(least, most int) string {
	return fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, least, most)
}

func oneOf(values ...string) string {
	text, _ := json.Marshal(values)
	return `{"enum": ` + string(text) + `}`
}

const (
	text     = `{"type": "string", "minLength": 1}`
	perhaps  = `{"type": ["string", "null"]}`
	duration = `{"type": "string", "pattern": "^([0-9]+[.]?[0-9]*(h|m|s|ms|us|µs|ns))+$|^0$"}`
	percent  = `{"type": "string", "pattern": "^[0-9]+[.]?[0-9]* *%$"}`
	share    = `{"type": "string", "pattern": "^[+-]?[0-9]+[.]?[0-9]* *%$"}`
	levels   = `{"enum": ["error", "warn", "off"]}`
	tokens   = 10_000_000
)

// planSchema is what the Go types don't tell of plans as they are written.
func planSchema() schematest.Options {
	context := `{"oneOf": [{"const": 0}, ` + numbers(2, tokens) + `]}`
	known := []string{"f32", "f16", "bf16", "float32", "float16", "bfloat16", "fp32", "fp16", "float", "half", "auto", ""}
	dtype, kv := oneOf(known...), oneOf(append(append(slices.Clone(known), plan.CacheTypes()[3:]...), "fp8", "fp8_e4m3", "fp8_e5m2")...)
	lengths, loads, start := list(numbers(1, tokens)), list(numbers(1, 10_000)), list(oneOf("cold", "warm"))
	positive := `{"type": ["number", "null"], "minimum": 0}`
	count := `{"type": ["integer", "null"], "minimum": 0}`
	const prompts = `{"anyOf": [{"$ref": "#/$defs/prompt"}, {"type": "array", "items": {"$ref": "#/$defs/prompt"}, "minItems": 1}]}`
	fields := map[string]string{
		"Plan.name": `{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}`, "Plan.engines": list(text), "Plan.model": list(text),
		"Plan.prompts": prompts, "Plan.max_tokens": lengths, "Plan.temperature": `{"const": 0}`, "Plan.context": list(context), "Plan.threads": list(numbers(0, tokens)),
		"Plan.models":  `{"anyOf": [` + text + `, ` + schematest.Own + `]}`,
		"Plan.include": `{"anyOf": [{"$ref": "#/$defs/cells"}, ` + schematest.Own + `]}`, "Plan.exclude": `{"anyOf": [{"$ref": "#/$defs/cells"}, ` + schematest.Own + `]}`, "Plan.repetitions": numbers(1, 100_000), "Warmup.launches": numbers(0, tokens), "Warmup.tokens": numbers(1, tokens),
		"Plan.isolation": oneOf("launch", "reused", "shared", ""), "Plan.cache": oneOf("off", "on", ""), "Plan.order": oneOf("interleaved", "shuffled", "grouped", ""),
		"Plan.thread": oneOf("page", "worker", ""), "Plan.adapter": oneOf("auto", "gpu", "swiftshader", ""), "Plan.kernels": oneOf("auto", "software", "gpu", ""),
		"Plan.sort": oneOf("partial", "full", ""), "Plan.dtype": list(dtype), "Plan.kv_cache_dtype": list(kv), "Plan.start": start, "Plan.webllm_version": list(text),
		"Axes.input_lengths": lengths, "Axes.output_lengths": lengths, "Axes.batch_sizes": loads, "Axes.concurrency": loads, "Axes.dtypes": list(dtype),
		"Axes.kv_cache_dtypes": list(kv), "Axes.webllm_versions": list(text), "Axes.contexts": list(context), "Axes.thread_counts": list(numbers(1, tokens)),
		"Axes.starts": start, "Group.engines": list(text), "Deployment.container_name": perhaps, "Deployment.quantization": perhaps,
		"Deployment.tensor_parallel_size": count, "Deployment.gpu_memory_utilization": `{"type": ["number", "null"], "minimum": 0, "maximum": 1}`,
		"Deployment.model_params": positive, "Deployment.num_layers": count, "Deployment.num_heads": count, "Deployment.head_dim": count, "Deployment.hidden_size": count,
		"UntilCI.max_repetitions": numbers(0, 100_000), "Traffic.loop": oneOf("closed", "open", "batch", ""), "Traffic.concurrency": numbers(0, 10_000),
		"Traffic.requests": numbers(0, 1_000_000), "Traffic.arrivals": oneOf("constant", "poisson", ""),
		"Traffic.rate": `{"type": "number", "minimum": 0, "maximum": 1000000}`, "Traffic.turns": numbers(0, 1000), "Kind.name": text,
		"Kind.share": `{"type": "number", "minimum": 0}`, "Kind.input_length": numbers(0, tokens), "Kind.output_length": numbers(0, tokens),
		"OpenAI.api": oneOf("completions", "chat", ""), "Ollama.kv_type": oneOf(append(plan.OllamaKVTypes(), "")...), "Ollama.keep_alive": `{"type": ["string", "integer"]}`,
		"LlamaCpp.flash_attention": oneOf("off", "on", "auto", ""), "LlamaCpp.mmap": oneOf("on", "off", ""),
	}
	for _, name := range []string{"batch_threads", "batch", "ubatch", "gpu_layers"} {
		fields["LlamaCpp."+name] = numbers(0, tokens)
	}
	for _, name := range []string{"cache_type_k", "cache_type_v"} {
		fields["LlamaCpp."+name] = oneOf(append(plan.CacheTypes(), "")...)
	}
	for _, name := range []string{"ttft_ms", "tpot_ms", "e2e_ms"} {
		fields["Goal."+name] = `{"type": "number", "minimum": 0}`
	}
	// Names of one value, and other tools' names.
	others := map[string]string{"Plan.prompt": other("prompts", prompts), "Plan.model_id": other("model", list(text)), "Group.model_id": other("model", text),
		"Group.max_tokens": other("output_lengths", lengths), "Group.dtype": other("dtypes", `{"anyOf": [{"type": "null"}, `+list(dtype)+`]}`),
		"Group.kv_cache_dtype": other("kv_cache_dtypes", `{"anyOf": [{"type": "null"}, `+list(kv)+`]}`), "Group.webllm_version": other("webllm_versions", list(text)),
		"Group.context": other("contexts", list(context)), "Group.threads": other("thread_counts", list(numbers(1, tokens))), "Group.start": other("starts", start)}
	for _, of := range []string{"Plan.", "Group."} {
		others[of+"input_length"], others[of+"output_length"] = other("input_lengths", lengths), other("output_lengths", lengths)
		others[of+"batch_size"], others[of+"engine"] = other("batch_sizes", loads), other("engines", list(text))
		others[of+"max_model_len"] = other("context", `{"anyOf": [{"type": "null"}, `+list(context)+`]}`)
	}
	return schematest.Options{ID: "llmparity.plan/1", Title: "a plan, which run carries out", Written: &schematest.Written{Tag: "yaml", Fields: fields, Other: others,
		Defs: map[string]string{"prompt": prompt(), "values": list(`{"type": ["string", "integer"]}`), "limit": limitSchema(), "cells": cellsSchema(), "change": changeSchema()},
		Types: map[reflect.Type]string{
			reflect.TypeFor[plan.Duration](): duration, reflect.TypeFor[plan.Percent](): percent, reflect.TypeFor[plan.Cells](): `{"$ref": "#/$defs/cells"}`,
			reflect.TypeFor[plan.Gate](): gateSchema(), reflect.TypeFor[plan.Group](): groupSchema,
			reflect.TypeFor[plan.UntilCI](): `{"oneOf": [` + percent + `, ` + schematest.Own + `]}`,
		},
		More: map[reflect.Type]string{
			reflect.TypeFor[plan.Plan](): `{"patternProperties": {"^x-": {"description": "nobody reads it: a place for anchors"}},
				"anyOf": [{"required": ["model"]}, {"required": ["models"]}, {"required": ["model_id"]}]}`,
			reflect.TypeFor[plan.Group]():  `{"anyOf": [{"required": ["model"]}, {"required": ["model_id"]}]}`,
			reflect.TypeFor[plan.Kind]():   `{"required": ["name"], "not": {"required": ["prompt", "input_length"]}}`,
			reflect.TypeFor[plan.OpenAI](): `{"required": ["url"]}`, reflect.TypeFor[plan.UntilCI](): `{"required": ["width"]}`,
		},
	}}
}

// groupSchema is a model's name, or more of it.
const groupSchema = `{"oneOf": [` + text + `, ` + schematest.Own + `]}`

// other is the schema of a field by another name.
func other(of, schema string) string {
	return strings.Replace(schema, "{", `{"description": "`+of+`", `, 1)
}

// prompt is an entry of prompts.
func prompt() string {
	limit := `, "limit": ` + numbers(0, 1_000_000)
	kinds := []string{text}
	for _, of := range [][2]string{{"text", text}, {"file", text}, {"dataset", text + `, "field": {"type": "string"}` + limit}, {"trace", text + limit},
		{"conversation", `{"type": "array", "items": ` + text + `, "minItems": 1}`}} {
		kinds = append(kinds, `{"type": "object", "required": ["`+of[0]+`"], "additionalProperties": false, "properties": {"`+of[0]+`": `+of[1]+`}}`)
	}
	return `{"anyOf": [` + strings.Join(kinds, ", ") + `]}`
}

// cellsSchema is an entry of include and exclude.
func cellsSchema() string {
	var fields []string
	for _, name := range []string{"model", "models", "model_id", "engine", "engines", "context", "contexts", "max_model_len", "dtype", "dtypes", "kv_cache_dtype",
		"kv_cache_dtypes", "webllm_version", "webllm_versions", "threads", "thread_counts", "start", "starts", "batch_size", "batch_sizes", "concurrency", "prompt",
		"prompts", "input_length", "input_lengths", "output_length", "output_lengths", "max_tokens"} {
		fields = append(fields, `"`+name+`": {"$ref": "#/$defs/values"}`)
	}
	return `{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {` + strings.Join(fields, ", ") + `}}`
}

func limitSchema() string {
	return several(check(`"anyOf": [{"required": ["min"]}, {"required": ["max"]}]`, `"min": {"type": "number"}, "max": {"type": "number"}`))
}

func changeSchema() string {
	return several(`{"anyOf": [` + share + `, ` + check(`"required": ["change"]`, `"change": `+share) + `]}`)
}

func several(of string) string {
	return `{"anyOf": [` + of + `, {"type": "array", "items": ` + of + `}]}`
}

// check is one of a gate's, of some cells alone where it says so.
func check(required, fields string) string {
	return `{"type": "object", "additionalProperties": false, ` + required + `, "properties": {` + fields + `, "engine": {"type": "string"}, ` +
		`"model": {"type": "string"}, "prompt": {"type": ["string", "integer"]}, "level": ` + levels + `}}`
}

// gateSchema is that of thresholds, which have figures for fields.
func gateSchema() string {
	var limits, changes []string
	for _, f := range plan.GateFigures() {
		for _, name := range slices.Compact([]string{f.Name, f.Column}) {
			limits = append(limits, `"`+name+`": {"$ref": "#/$defs/limit"}`)
			if f.Better != plan.Neither {
				changes = append(changes, `"`+name+`": {"$ref": "#/$defs/change"}`)
			}
		}
	}
	parity := check(`"minProperties": 1`, `"min_agreement": `+share+`, "first_divergence": `+numbers(0, tokens)+`, "with": {"enum": ["engines", "baseline"]}`)
	return `{"type": "object", "additionalProperties": false, "properties": {"level": ` + levels + `, "failed": ` + levels + `, "gone": ` + levels +
		`, "unknown": ` + levels + `, "baseline": {"type": "string"}, "parity": ` + parity +
		`, "vs_baseline": {"type": "object", "additionalProperties": false, "properties": {` + strings.Join(changes, ", ") + `}}, ` + strings.Join(limits, ", ") + `}}`
}

func TestPublishedSchemas(t *testing.T) {
	schematest.Published(t, "plan", plan.Plan{}, planSchema(), *update, "go test ./internal/plan -run PublishedSchemas -update")
}

// asJSON is a plan as an editor has it.
func asJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}

func TestShippedPlansAreAsTheSchemaSays(t *testing.T) {
	all := map[string][]byte{"default": plans.Default, "init": plans.Init}
	for _, name := range plans.Names() {
		text, err := plans.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = text
	}
	for name, text := range all {
		if err := schematest.Validate(t, "plan", asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// yamlNames are a struct's fields as plans have them.
func yamlNames(of any) []string {
	var out []string
	for i := range reflect.TypeOf(of).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}
