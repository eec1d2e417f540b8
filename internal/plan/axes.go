package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/engine"
	"llmparity/internal/nearest"
	"llmparity/internal/record"
)

// axis is one of those that cells have a value of. Behind these come the versions of engines that have several, in the
// order of their kinds.
type axis int

const (
	ofContext axis = iota // those that need a launch, as versions do
	ofDType
	ofKVDType
	ofThreads
	ofStart
	ofBatch
	ofConcurrency
	ofPrompt // those that need none; also of input length: a prompt that has yet to be made
	ofOutput
	ofEngine
	axisCount
)

// axisNames are those of one value, as include and exclude have them.
var axisNames = [axisCount]string{"context", "dtype", "kv_cache_dtype", "threads", "start", "batch_size", "concurrency",
	"prompt", "output_length", "engine"}

// axes are those of a plan, in the order in which cells are made: the last one's values change first.
func axes(kinds engine.Kinds) []axis {
	out := []axis{ofContext, ofDType, ofKVDType}
	for i := range kinds.VersionAxes() {
		out = append(out, axisCount+axis(i))
	}
	return append(out, ofThreads, ofStart, ofBatch, ofConcurrency, ofPrompt, ofOutput, ofEngine)
}

// launches tells whether another value of the axis needs another launch.
func (a axis) launches() bool { return a < ofPrompt || a >= axisCount }

// name is that of one value.
func (a axis) name(kinds engine.Kinds) string {
	if a >= axisCount {
		return kinds.VersionAxes()[a-axisCount]
	}
	return axisNames[a]
}

// list is the field that has the axis' list.
func (a axis) list(kinds engine.Kinds) string {
	if a == ofPrompt {
		return "input_lengths"
	}
	return listOf(a.name(kinds))
}

// listOf is the list that a field of one value is one of; of any other name it is that name.
func listOf(name string) string {
	switch name {
	case "model", "engine", "prompt", "input_length", "output_length", "batch_size", "dtype", "kv_cache_dtype",
		"context", "start":
		return name + "s"
	case "max_tokens":
		return "output_lengths"
	case "threads":
		return "thread_counts"
	}
	if strings.HasSuffix(name, "_version") {
		return name + "s"
	}
	return name
}

// canonical is the name here of a field that other tools call otherwise.
func canonical(name string) string {
	ours, ok := map[string]string{"model_id": "model", "max_model_len": "context", "concurrencies": "concurrency"}[name]
	if !ok {
		return name
	}
	return ours
}

// axisOf is the same for all names of an axis.
func axisOf(name string) string { return listOf(canonical(name)) }

// dtype is a type's name here, of one of those that other tools have. That which an engine chooses is empty.
func dtype(text string) string {
	switch strings.ToLower(text) {
	case "float32", "float", "fp32":
		return "f32"
	case "float16", "half", "fp16":
		return "f16"
	case "bfloat16":
		return "bf16"
	case "auto":
		return ""
	}
	return text
}

// value of an axis.
type value struct {
	text string // as include and exclude name it
	n    int    // of numbers; of a prompt, which of asked
}

// shown is a value as messages have it.
func (v value) shown(a axis) string {
	if a.texts() {
		return strconv.Quote(v.text)
	}
	return v.text
}

// texts tells whether values of the axis are no numbers.
func (a axis) texts() bool {
	return a >= axisCount || a == ofDType || a == ofKVDType || a == ofStart || a == ofEngine
}

// DTypes are those that a plan may name; KVDTypes those of the KV cache: of a GGUF's formats those that caches have,
// and those that other tools name. Engines have not all of them. Starts are what an engine may find of a model file.
var (
	DTypes   = []string{"f32", "f16", "bf16"}
	KVDTypes = []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8", "fp8_e4m3",
		"fp8_e5m2"}
	Starts = []string{record.ColdStart, record.WarmStart}
)

// Axes are lists: every combination of their values is asked of every engine. An empty one is what the plan's field of
// one value says, which must be empty where there is a list: DType of DTypes, MaxTokens of OutputLengths, Prompts of
// InputLengths, and so on.
type Axes struct {
	// of prompts that are made, in the model's tokens; in place of prompts
	InputLengths  []int `yaml:"input_lengths,flow,omitempty"`
	OutputLengths []int `yaml:"output_lengths,flow,omitempty"` // in tokens; in place of max_tokens
	BatchSizes    []int `yaml:"batch_sizes,flow,omitempty"`    // requests that are sent in one moment
	// clients, of which each asks again when it was answered
	Concurrency  []int    `yaml:"concurrency,flow,omitempty"`
	DTypes       []string `yaml:"dtypes,flow,omitempty"`          // of dtype
	KVDTypes     []string `yaml:"kv_cache_dtypes,flow,omitempty"` // of kv_cache_dtype
	Contexts     []int    `yaml:"contexts,flow,omitempty"`        // of context
	ThreadCounts []int    `yaml:"thread_counts,flow,omitempty"`   // of threads
	Starts       []string `yaml:"starts,flow,omitempty"`          // of start

	VersionLists map[string][]string `yaml:"-"` // of engines that have several, by their axis
}

// Group is a model of `models`, with axes of its own in place of the plan's. It may be written as its name alone.
type Group struct {
	Model      string   `yaml:"model"` // or model_id
	Engines    []string `yaml:"engines,flow,omitempty"`
	Axes       `yaml:",inline"`
	Deployment `yaml:",inline"`
}

func (g *Group) read(r *reader, n ast.Node, path string) error {
	if grouped(n) {
		return r.group(n, reflect.ValueOf(g).Elem(), path)
	}
	text, ok := single(n)
	if !ok {
		return mistyped(n, path, "a model's name, or a group with `model`,")
	}
	g.Model = text
	return nil
}

// scope is a plan, or a model of several, as far as they may say the same; path stands before its fields.
type scope struct {
	path string
	Group
}

// scopes are the plan and its models.
func (p *Plan) scopes() []scope {
	out := []scope{{"", Group{Model: p.Model, Engines: p.Engines, Axes: p.Axes, Deployment: p.Deployment}}}
	for i, g := range p.Models {
		out = append(out, scope{fmt.Sprintf("models[%d].", i), g})
	}
	return out
}

// plain tells that a group says no more than its model's name.
func (g Group) plain() bool { return reflect.DeepEqual(g, Group{Model: g.Model}) }

// MarshalYAML writes the name alone where there is no more.
func (g Group) MarshalYAML() ([]byte, error) {
	if g.plain() {
		return yaml.Marshal(g.Model)
	}
	type written Group
	return appended(written(g), g.written())
}

// Deployment is what other tools' plans say of where and how a model is served, and of the model itself. No engine here
// does otherwise for it: Unserved says what of it asks for something that isn't here, Unheeded what makes no
// difference.
type Deployment struct {
	ContainerName  string  `yaml:"container_name,omitempty"`
	TensorParallel int     `yaml:"tensor_parallel_size,omitempty"`
	Quantization   string  `yaml:"quantization,omitempty"`
	GPUMemory      float64 `yaml:"gpu_memory_utilization,omitempty"`
	// this and the rest: of the model, for forecasts without its files
	Params     float64 `yaml:"model_params,omitempty"`
	Layers     int     `yaml:"num_layers,omitempty"`
	Heads      int     `yaml:"num_heads,omitempty"`
	HeadDim    int     `yaml:"head_dim,omitempty"`
	HiddenSize int     `yaml:"hidden_size,omitempty"`
}

// numbers and texts are the lists by axis, and number and text the plan's fields of one value.
func (x *Axes) numbers() map[axis]*[]int {
	return map[axis]*[]int{ofPrompt: &x.InputLengths, ofOutput: &x.OutputLengths, ofBatch: &x.BatchSizes,
		ofConcurrency: &x.Concurrency, ofContext: &x.Contexts, ofThreads: &x.ThreadCounts}
}

func (x *Axes) texts() map[axis]*[]string {
	return map[axis]*[]string{ofDType: &x.DTypes, ofKVDType: &x.KVDTypes, ofStart: &x.Starts}
}

func (p *Plan) number() map[axis]*int {
	return map[axis]*int{ofContext: &p.Context, ofThreads: &p.Threads, ofOutput: &p.MaxTokens}
}

func (p *Plan) text() map[axis]*string {
	return map[axis]*string{ofDType: &p.DType, ofKVDType: &p.KVDType, ofStart: &p.Start}
}

// values are those of an axis' list.
func (x *Axes) values(a axis, kinds engine.Kinds) (out []value) {
	if list, ok := x.numbers()[a]; ok {
		for _, n := range *list {
			out = append(out, value{strconv.Itoa(n), n})
		}
		return out
	}
	list := x.VersionLists[a.name(kinds)]
	if texts, ok := x.texts()[a]; ok {
		list = *texts
	}
	for _, text := range list {
		out = append(out, value{text: text})
	}
	return out
}

// set gives an axis a list; none takes it away.
func (x *Axes) set(a axis, kinds engine.Kinds, values []string) error {
	if to, ok := x.texts()[a]; ok {
		*to = values
		x.rename()
		return nil
	}
	if a >= axisCount {
		x.VersionLists = with(x.VersionLists, a.name(kinds), values, len(values) > 0)
		return nil
	}
	var list []int
	for _, v := range values {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%s: %q stands where a whole number is wanted", a.list(kinds), v)
		}
		list = append(list, n)
	}
	if to, ok := x.numbers()[a]; ok {
		*to = list
	}
	return nil
}

func (x *Axes) rename() {
	for _, list := range [][]string{x.DTypes, x.KVDTypes} {
		for i, text := range list {
			list[i] = dtype(text)
		}
	}
}

// one is what the plan's field of one value of an axis says; ok tells whether there is such a field.
func (p *Plan) one(a axis) (v value, ok bool) {
	if n, ok := p.number()[a]; ok {
		return value{strconv.Itoa(*n), *n}, true
	}
	if text, ok := p.text()[a]; ok {
		return value{text: *text}, true
	}
	return value{text: p.Versions[a.name(p.kinds)]}, a >= axisCount
}

// setOne has that field say a value; the zero one says nothing.
func (p *Plan) setOne(a axis, v value) {
	if n, ok := p.number()[a]; ok {
		*n = v.n
	} else if text, ok := p.text()[a]; ok {
		*text = v.text
	} else if a >= axisCount {
		p.Versions = with(p.Versions, a.name(p.kinds), v.text, v.text != "")
	}
}

// with is a map with a value, or without it; nil where nothing is left. Copies of a plan share maps.
func with[V any](m map[string]V, name string, v V, there bool) map[string]V {
	out := maps.Clone(m)
	if !there {
		delete(out, name)
		if len(out) == 0 {
			return nil
		}
		return out
	}
	if out == nil {
		out = map[string]V{}
	}
	out[name] = v
	return out
}

// Set gives an axis the values that a flag has, in place of all that the plan says of it, in groups, too. Axes are
// named as lists: models, engines, input_lengths, output_lengths, batch_sizes, concurrency, dtypes, kv_cache_dtypes,
// contexts, thread_counts, starts, and those of engines' versions. A single value becomes that of the plan's field of
// one value, where there is one. Whether values are possible Validate says, afterwards.
func (p *Plan) Set(list string, values ...string) error {
	if list == "models" {
		p.setModels(values)
		return nil
	}
	known := []string{"models"}
	for _, a := range axes(p.kinds) {
		if known = append(known, a.list(p.kinds)); a.list(p.kinds) == list {
			return p.setAxis(a, values)
		}
	}
	return fmt.Errorf("there is no axis %q, the nearest is %s", list, nearest.Of(list, known, 1)[0])
}

func (p *Plan) setModels(names []string) {
	p.Model, p.Models = "", nil
	if len(names) == 1 {
		p.Model = names[0]
		return
	}
	for _, name := range names {
		p.Models = append(p.Models, Group{Model: name})
	}
}

func (p *Plan) setAxis(a axis, values []string) error {
	if a == ofEngine {
		p.Engines = values
	} else if err := p.Axes.set(a, p.kinds, values); err != nil {
		return err
	}
	if _, ok := p.one(a); ok {
		v := value{}
		if a == ofContext {
			v.n = Unsaid
		}
		if list := p.Axes.values(a, p.kinds); len(list) == 1 {
			v = list[0]
			_ = p.Axes.set(a, p.kinds, nil) // none is no wrong one
		}
		p.setOne(a, v)
	}
	for i := range p.Models {
		g := &p.Models[i]
		if a == ofEngine {
			g.Engines = nil
		}
		_ = g.Axes.set(a, p.kinds, nil)
	}
	switch a {
	case ofPrompt:
		p.Prompts, p.Sources = nil, nil
	case ofBatch:
		p.Concurrency = nil
	case ofConcurrency:
		p.BatchSizes = nil
		if p.Traffic != nil {
			t := *p.Traffic
			t.Concurrency = 0
			p.Traffic = &t
		}
	}
	if a >= axisCount {
		p.unsay(a.list(p.kinds))
	}
	return nil
}

// validateAxes looks at lists.
func (p Plan) validateAxes() error {
	for _, s := range p.scopes() {
		if err := s.Axes.validate(s.path, p.kinds); err != nil {
			return err
		}
	}
	for _, a := range axes(p.kinds) {
		one, ok := p.one(a)
		said := ok && one != value{} && one != value{text: "0"} && one.n != Unsaid
		if said && a != ofOutput && len(p.Axes.values(a, p.kinds)) > 0 {
			return fmt.Errorf("%s: %s says it too; leave one out", a.list(p.kinds), a.name(p.kinds))
		}
	}
	return nil
}

// validate refuses those of lists that are wrong, or there already.
func (x Axes) validate(at string, kinds engine.Kinds) error {
	for _, a := range axes(kinds) {
		field, seen := at+a.list(kinds), map[value]bool{}
		for i, v := range x.values(a, kinds) {
			if err := a.known(v); err != nil {
				return fmt.Errorf("%s[%d]: %w", field, i, err)
			}
			if seen[v] {
				return fmt.Errorf("%s[%d]: %s is there already", field, i, v.shown(a))
			}
			seen[v] = true
		}
	}
	return nil
}

// known refuses a value that a list of the axis can't have.
func (a axis) known(v value) error {
	most, texts := mostTokens, map[axis][]string{ofDType: DTypes, ofKVDType: KVDTypes, ofStart: Starts}[a]
	if a == ofBatch || a == ofConcurrency {
		most = mostClients
	}
	switch {
	case a >= axisCount && v.text == "":
		return errors.New("a version such as 0.2.86 is needed")
	case a >= axisCount, v.text == "" && a != ofStart, slices.Contains(texts, v.text):
		return nil
	case texts != nil:
		return unknown(v.text, texts)
	case a == ofContext && badContext(v.n):
		return fmt.Errorf("%d, at least 2 is needed, or 0 for the model's own", v.n)
	case a != ofContext && (v.n < 1 || v.n > most):
		return fmt.Errorf("%d, from 1 to %d are possible", v.n, most)
	}
	return nil
}
