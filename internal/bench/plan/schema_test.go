package plan_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"llmparity/internal/axis"
	"llmparity/internal/bench/plan"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

var update = flag.Bool("update", false, "write the published schemas anew")

// list is a value or a list of values.
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

// planSchema adds what the Go types do not say about written plans.
func planSchema() schematest.Options {
	return schematest.Options{ID: "llmparity.plan/1", Title: "A plan: what llmparity run measures",
		Written: &schematest.Written{
			Tag: "yaml", Fields: fieldSchemas(), Other: otherNames(),
			Defs: map[string]string{"prompt": prompt(), "values": list(`{"type": ["string", "number"]}`),
				"limit": limitSchema(),
				"cells": cellsSchema(), "change": changeSchema()},
			Types: map[reflect.Type]string{
				reflect.TypeFor[plan.Duration](): duration, reflect.TypeFor[plan.Percent](): percent,
				reflect.TypeFor[plan.Entry](): cellsRef,
				reflect.TypeFor[gates.Gate](): gateSchema(), reflect.TypeFor[plan.Group](): groupSchema,
				reflect.TypeFor[plan.UntilCI](): `{"oneOf": [` + percent + `, ` + schematest.Own + `]}`,
			},
			More: map[reflect.Type]string{
				reflect.TypeFor[plan.Plan](): `{"patternProperties": {"^x-": {"description": "Ignored; a place for YAML anchors."}},
				"anyOf": [{"required": ["model"]}, {"required": ["models"]}, {"required": ["model_id"]}]}`,
				reflect.TypeFor[plan.Group]():   groupRules(),
				reflect.TypeFor[plan.Kind]():    `{"required": ["name"], "not": {"required": ["prompt", "input_length"]}}`,
				reflect.TypeFor[plan.UntilCI](): `{"required": ["width"]}`,
			},
		}}
}

const cellsRef = `{"$ref": "#/$defs/cells"}`

// values is the schema of an axis: a value or a list of values.
func values(f *plan.Field) string {
	known := slices.Clone(f.Known)
	switch {
	case f.Name == axis.Context:
		return list(`{"oneOf": [{"const": 0}, ` + numbers(2, f.Most) + `]}`)
	case f.Name == axis.DType || f.Name == axis.KVDType: // other tools' names of the first three, too
		others := []string{"float32", "float16", "bfloat16", "fp32", "fp16", "float", "half", "auto", ""}
		known = slices.Concat(known[:3], others, known[3:])
	case f.Name == axis.Temperature:
		return list(`{"type": "number", "minimum": 0, "maximum": 2}`)
	case f.Most > 0:
		return list(numbers(f.Least, f.Most))
	}
	return list(oneOf(known...))
}

// valuesOf is that of the axis with a name.
func valuesOf(name string) string {
	all := plan.Fields(kinds.All)
	return values(all[slices.IndexFunc(all, func(f *plan.Field) bool { return f.Name == name })])
}

func lengths() string { return valuesOf(axis.Output) }

// fieldSchemas are the schemas of fields whose types are not specific enough.
func fieldSchemas() map[string]string {
	const positive, count = `{"type": ["number", "null"], "minimum": 0}`, `{"type": ["integer", "null"], "minimum": 0}`
	const number, share = `{"type": "number", "minimum": 0}`, `{"type": ["number", "null"], "minimum": 0, "maximum": 1}`
	fields := map[string]string{"Plan.name": `{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}`,
		"Plan.prompts":            prompts,
		"Plan.models":             `{"anyOf": [` + text + `, ` + schematest.Own + `]}`,
		"Plan.temperature":        valuesOf(axis.Temperature),
		"Plan.max_tokens":         lengths(),
		"Plan.threads":            list(numbers(0, tokens)),
		"UntilCI.max_repetitions": numbers(0, 100_000),
		"Traffic.rate":            `{"type": "number", "minimum": 0, "maximum": 1000000}`, "Kind.name": text,
		"Deployment.gpu_memory_utilization": share, "Deployment.model_params": positive}
	for schema, names := range map[string][]string{
		perhaps: {"Deployment.container_name", "Deployment.quantization"},
		count: {"Deployment.tensor_parallel_size", "Deployment.num_layers", "Deployment.num_heads",
			"Deployment.head_dim", "Deployment.hidden_size"},
		number:             {"Kind.share"},
		numbers(0, tokens): {"Kind.input_length", "Kind.output_length"},
		list(text):         {"Plan.engines", "Group.engines"},
		models:             {"Plan.model"},
		`{"anyOf": [` + cellsRef + `, ` + schematest.Own + `]}`: {"Plan.include", "Plan.exclude"},
	} {
		for _, name := range names {
			fields[name] = schema
		}
	}
	for _, f := range plan.Fields(nil) {
		if f.Name == axis.Engine || f.Name == axis.Model {
			continue
		}
		fields["Axes."+f.List] = values(f)
		for i := range reflect.TypeFor[plan.Plan]().NumField() {
			tag := reflect.TypeFor[plan.Plan]().Field(i).Tag.Get("yaml")
			if name, _, _ := strings.Cut(tag, ","); name == f.Name && fields["Plan."+name] == "" {
				fields["Plan."+name] = values(f)
			}
		}
	}
	for _, f := range (&plan.Plan{Traffic: &plan.Traffic{Goal: &record.Goal{}}}).Singles() {
		path := strings.Split("Plan."+f.Key, ".")
		last := len(path) - 1
		of := strings.ToUpper(path[last-1][:1]) + path[last-1][1:] + "." + path[last]
		if fields[of] == "" {
			fields[of] = fieldSchema(f)
		}
	}
	maps.DeleteFunc(fields, func(_, schema string) bool { return schema == "" })
	return fields
}

// fieldSchema is the schema from a field's row; empty: only its type.
func fieldSchema(f plan.Single) string {
	switch f.To.(type) {
	case *string:
		if f.OneOf != nil {
			return oneOf(append(slices.Clone(f.OneOf), "")...)
		}
	case *int:
		least := f.Least
		if f.None {
			least = 0
		}
		return numbers(least, cmp.Or(f.Most, tokens))
	case *float64:
		return `{"type": "number", "minimum": 0}`
	}
	return ""
}

// sections are the schemas of engines' sections.
func sections() map[string]string {
	out := map[string]string{}
	for _, k := range kinds.All.Sections() {
		var fields, required []string
		for _, f := range k.Config().Fields() {
			if f.Key == "" {
				continue
			}
			of := `{"type": ["string", "integer"]}`
			switch f.To.(type) {
			case *int:
				of = numbers(0, tokens)
			case *bool:
				of = `{"type": "boolean"}`
			}
			if f.OneOf != nil {
				of = oneOf(append(f.OneOf, "")...)
			}
			if of = described(strings.ReplaceAll(f.Help, `"`, `'`), list(of)); k.Root {
				out["Plan."+f.Key] = of
			}
			fields = append(fields, `"`+f.Key+`": `+of)
			if f.Required {
				required = append(required, f.Key)
			}
		}
		list, _ := json.Marshal(append([]string{}, required...))
		out["Plan."+k.Section] = `{"description": "Settings of ` + k.Title +
			`. A list is an axis: every value is measured.", "type": ["object", "null"], "additionalProperties": false, ` +
			`"required": ` + string(list) + `, "properties": {` + strings.Join(fields, ", ") + `}}`
	}
	return out
}

// otherNames are aliases: of lists for a single value, and names that other tools use.
func otherNames() map[string]string {
	perhaps := func(of string) string { return `{"anyOf": [{"type": "null"}, ` + of + `]}` }
	others := map[string]string{"Plan.prompt": other("prompts", prompts), "Plan.model_id": other("model", list(text)),
		"Group.model_id": other("model", text), "Group.max_tokens": other("output_lengths", lengths()),
		"Group.dtype":          other("dtypes", perhaps(valuesOf(axis.DType))),
		"Group.kv_cache_dtype": other("kv_cache_dtypes", perhaps(valuesOf(axis.KVDType))),
		"Group.context":        other("contexts", valuesOf(axis.Context)), "Group.threads": other("thread_counts", lengths()),
		"Group.start":   other("starts", valuesOf(axis.Start)),
		"Group.storage": other("storages", valuesOf(axis.Storage))}
	maps.Copy(others, sections())
	others["Group.name"] = described("Name of the model, if each engine has a form of its own.", text)
	for _, name := range kinds.All.Names() {
		k, _ := kinds.All.Of(name)
		others["Group."+name] = described("Form of the model for "+k.Title+".", text)
	}
	for _, of := range []string{"Plan.", "Group."} {
		for _, k := range kinds.All {
			if k.VersionAxis != "" {
				others[of+k.VersionAxis] = other(k.VersionList(), list(text))
				others[of+k.VersionList()] = described(strings.ReplaceAll(k.VersionHelp, `"`, `'`), list(text))
			}
		}
		others[of+"input_length"], others[of+"output_length"] = other("input_lengths", lengths()),
			other("output_lengths", lengths())
		others[of+"batch_size"] = other("batch_sizes", valuesOf(axis.BatchSize))
		others[of+"engine"] = other("engines", list(text))
		others[of+"max_model_len"] = other("context", perhaps(valuesOf(axis.Context)))
	}
	return others
}

// prompts are a prompt or a list of prompts.
const prompts = `{"anyOf": [{"$ref": "#/$defs/prompt"}, {"type": "array", "items": {"$ref": "#/$defs/prompt"}, "minItems": 1}]}`

// models are names or groups.
const models = `{"anyOf": [` + text + `, {"$ref": "#/$defs/Group"}, {"type": "array", "items": {"anyOf": [` + text +
	`, {"$ref": "#/$defs/Group"}]}, "minItems": 1}]}`

// groupRules asks a group for a model, or for a name and forms. Engines whose names are prefixes have forms, too.
func groupRules() string {
	return `{"anyOf": [{"required": ["model"]}, {"required": ["model_id"]}, {"required": ["name"], "minProperties": 2}],
		"not": {"required": ["name", "model"]}, "patternProperties": {"^exec:": ` + text + `}}`
}

// groupSchema is a model's name or a group.
const groupSchema = `{"oneOf": [` + text + `, ` + schematest.Own + `]}`

// other is the schema of an alias.
func other(of, schema string) string { return described("The same as "+of+".", schema) }

// described is a schema with a description.
func described(text, schema string) string {
	return strings.Replace(schema, "{", `{"description": "`+text+`", `, 1)
}

// prompt is an entry of prompts.
func prompt() string {
	limit := `, "limit": ` + described("Lines to use. Default: all.", numbers(0, 1_000_000))
	kinds := []string{text}
	for _, of := range [][3]string{
		{"text", "The prompt itself.", text},
		{"file", "A text file that holds the prompt.", text},
		{"dataset", "A JSON Lines file with one prompt per line, sent one after another.",
			text + `, "field": ` + described("Name of the field that holds the prompt. Default: a usual name such as prompt.", `{"type": "string"}`) + limit},
		{"trace", "A CSV or JSON file with time, input and output length of each request.", text + limit},
		{"conversation", "User messages of a conversation, in order.",
			`{"type": "array", "items": ` + text + `, "minItems": 1}`}} {
		kinds = append(kinds, `{"type": "object", "required": ["`+of[0]+
			`"], "additionalProperties": false, "properties": {"`+of[0]+`": `+described(of[1], of[2])+`}}`)
	}
	return `{"anyOf": [` + strings.Join(kinds, ", ") + `]}`
}

// cellsSchema is an entry of include and exclude.
func cellsSchema() string {
	names := append(plan.EntryNames(kinds.All), "model_id", "max_model_len", "max_tokens")
	return `{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {` +
		strings.Join(axisFields(names), ", ") + `}}`
}

// axisFields are fields with one value of an axis, or several.
func axisFields(names []string) (out []string) {
	for _, name := range names {
		out = append(out, `"`+name+`": {"$ref": "#/$defs/values"}`)
	}
	return out
}

func limitSchema() string {
	return several(gateCheck(`"anyOf": [{"required": ["min"]}, {"required": ["max"]}, {"required": ["vs_baseline"]}]`,
		`"min": `+described("The median may not be lower.", number)+`, "max": `+
			described("The median may not be higher.", number)+`, "vs_baseline": `+
			described("Tolerance: how much worse than the baseline run, e.g. +0.5%.", share)))
}

func changeSchema() string {
	return several(`{"anyOf": [` + share + `, ` + gateCheck(`"required": ["change"]`,
		`"change": `+described("Tolerance: how much worse than the baseline run, e.g. -5%.", share)+`, "detect": `+detect) + `]}`)
}

func several(of string) string {
	return `{"anyOf": [` + of + `, {"type": "array", "items": ` + of + `}]}`
}

// gateCheck is a check of a gate, for all cells or some.
func gateCheck(required, fields string) string {
	return `{"type": "object", "additionalProperties": false, ` + required + `, "properties": {` + fields + `, ` +
		strings.Join(axisFields(plan.ScopeNames(kinds.All)), ", ") +
		`, "level": ` + described("Effect of a failure of this check.", levels) + `}}`
}

// Schemas that fields of gates share.
var (
	number = `{"type": "number"}`
	detect = described("Smallest regression that a pass rules out, e.g. 10%.", share)
)

// gateSchema is the schema of a gate, whose fields include figures.
func gateSchema() string {
	var limits, changes []string
	for _, f := range figure.Columns(figure.Any) {
		for _, name := range slices.Compact([]string{f.Name, f.Column.Name}) {
			limits = append(limits, `"`+name+`": {"$ref": "#/$defs/limit"}`)
			if f.Better != figure.Neither {
				changes = append(changes, `"`+name+`": {"$ref": "#/$defs/change"}`)
			}
		}
	}
	parity := gateCheck(`"minProperties": 1`,
		`"min_agreement": `+described("Smallest share of the output in which engines generate the same tokens.", share)+
			`, "first_divergence": `+described("Smallest number of tokens before the first difference.", numbers(0, tokens))+
			`, "with": `+described("Compare with the other engines, or with the same engine in the baseline run.",
			`{"enum": ["engines", "baseline"]}`))
	return `{"type": "object", "additionalProperties": false, "properties": {"level": ` + described("Effect of a failed check, unless the check has its own level.", levels) +
		`, "failed": ` + described("Effect of failed launches.", levels) +
		`, "gone": ` + described("Effect of cells that only the baseline run has.", levels) +
		`, "inconclusive": ` + described("Effect of an inconclusive check.", levels) + `` +
		`, "no_baseline": ` + described("ok: pass if there is no baseline run.", `{"const": "ok"}`) +
		`, "under_test": ` + described("What may differ from the baseline run.", list(`{"type": "string"}`)) +
		`, "detect": ` + detect +
		`, "baseline": ` + described("Baseline run: a saved name or a run folder.", `{"type": "string"}`) +
		`, "parity": ` + described("Limits on how much of the output must be the same.", parity) +
		`, "vs_baseline": {"description": "Tolerances: how much worse than the baseline run each figure may be. Default, with a baseline run: ` +
		(*gates.Gate)(nil).Against().Tolerances() + `.", "type": "object", "additionalProperties": false, "properties": {` +
		strings.Join(changes, ", ") + `}}, ` + strings.Join(limits, ", ") + `}}`
}

func TestPublishedSchemas(t *testing.T) {
	schematest.Published(t, "plan", plan.Plan{}, planSchema(), *update,
		"go test ./internal/bench/plan -run PublishedSchemas -update")
}

// asJSON is a plan as an editor validates it.
func asJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}
