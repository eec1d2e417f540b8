package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/document"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
)

// axis is a dimension of cells. The constants are followed by the versions of engines that have several, in the order
// of their kinds.
type axis int

const (
	ofContext axis = iota // the first ones need a launch of their own, as versions do
	ofDType
	ofKVDType
	ofWeights
	ofThreads
	ofStart
	ofBatch
	ofConcurrency
	ofPrompt // the rest needs none. Input lengths are prompts that are generated.
	ofOutput
	ofEngine
	ofModel // each has its own cells
	axisCount
)

// dimensions describe the axes but for versions.
var dimensions = [axisCount]struct {
	name        string // the field of a single value, as in include and exclude
	least, most int    // of a number
	known       []string
	isText      bool
}{
	ofContext:     {name: "context", most: mostTokens},
	ofDType:       {name: "dtype", known: DTypes, isText: true},
	ofKVDType:     {name: "kv_cache_dtype", known: KVDTypes, isText: true},
	ofWeights:     {name: "weights", known: engine.WeightForms, isText: true},
	ofThreads:     {name: "threads", least: 1, most: mostTokens},
	ofStart:       {name: "start", known: Starts, isText: true},
	ofBatch:       {name: "batch_size", least: 1, most: mostClients},
	ofConcurrency: {name: "concurrency", least: 1, most: mostClients},
	ofPrompt:      {name: "prompt", least: 1, most: mostTokens},
	ofOutput:      {name: "output_length", least: 1, most: mostTokens},
	ofEngine:      {name: "engine", isText: true},
	ofModel:       {name: "model", isText: true},
}

// axes are the axes of a plan, in the order of cells: values of the last one change first.
func axes(kinds engine.Kinds) []axis {
	out := []axis{ofContext, ofDType, ofKVDType, ofWeights}
	for i := range kinds.VersionAxes() {
		out = append(out, axisCount+axis(i))
	}
	return append(out, ofThreads, ofStart, ofBatch, ofConcurrency, ofPrompt, ofOutput, ofEngine)
}

// name is the field of a single value.
func (a axis) name(kinds engine.Kinds) string {
	if a >= axisCount {
		return kinds.VersionAxes()[a-axisCount]
	}
	return dimensions[a].name
}

// list is the field of a list.
func (a axis) list(kinds engine.Kinds) string {
	if a == ofPrompt {
		return "input_lengths"
	}
	return listOf(a.name(kinds))
}

// lists are the lists of fields of a single value. Versions have one as well.
var lists = map[string]string{"model": "models", "engine": "engines", "prompt": "prompts",
	"input_length": "input_lengths", "output_length": "output_lengths", "max_tokens": "output_lengths",
	"batch_size": "batch_sizes", "dtype": "dtypes", "kv_cache_dtype": "kv_cache_dtypes", "context": "contexts",
	"start": "starts", "threads": "thread_counts"}

// listOf is the list that belongs to the field of a single value; other names are returned unchanged.
func listOf(name string) string {
	if strings.HasSuffix(name, "_version") {
		return name + "s"
	}
	return cmp.Or(lists[name], name)
}

// foreignFields are fields that other tools call differently.
var foreignFields = map[string]string{"model_id": "model", "max_model_len": "context", "concurrencies": "concurrency"}

// canonical is our name of a field.
func canonical(name string) string { return cmp.Or(foreignFields[name], name) }

// axisOf returns the same for all names of an axis.
func axisOf(name string) string { return listOf(canonical(name)) }

// ownDType is our name of a dtype that other tools call differently. auto leaves a dtype to the engine.
func ownDType(text string) string {
	if strings.EqualFold(text, "auto") {
		return ""
	}
	if d, known := dtype.Named(text); known && d.Computes {
		return d.Name
	}
	return text
}

// value of an axis.
type value struct {
	text string // as in include and exclude
	n    int    // a number, or the index of a prompt
}

// value reads a value of the axis.
func (a axis) value(text string) (value, error) {
	switch {
	case a == ofDType, a == ofKVDType:
		return value{text: ownDType(text)}, nil
	case a.texts():
		return value{text: text}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return value{}, fmt.Errorf("must be a whole number, not %q", text)
	}
	return value{strconv.Itoa(n), n}, nil
}

// texts reports whether values of the axis are texts.
func (a axis) texts() bool { return a >= axisCount || dimensions[a].isText }

// Values that a plan may name: dtypes of weights and activations, of the KV cache, and states of the model file before
// a launch. An engine may support only some of them.
var (
	DTypes   = dtype.Computes()
	KVDTypes = dtype.Caches()
	Starts   = []string{record.ColdStart, record.WarmStart}
)

// Axes are lists. Every combination of their values is measured. A list replaces the field of a single value: dtypes
// dtype, output_lengths max_tokens, input_lengths prompts, and so on.
type Axes struct {
	// Lengths of generated prompts in tokens, e.g. [64, 256], instead of prompts.
	InputLengths []int `yaml:"input_lengths,flow,omitempty"`
	// Numbers of tokens to generate, e.g. [32, 128], instead of max_tokens.
	OutputLengths []int `yaml:"output_lengths,flow,omitempty"`
	// Numbers of requests that are sent at once, e.g. [1, 8].
	BatchSizes []int `yaml:"batch_sizes,flow,omitempty"`
	// Numbers of clients, e.g. [1, 2, 4]. Each client sends its next request after an answer.
	Concurrency []int `yaml:"concurrency,flow,omitempty"`
	// Several dtypes, e.g. [f32, f16].
	DTypes []string `yaml:"dtypes,flow,omitempty"`
	// Several KV cache dtypes, e.g. [f16, q8_0].
	KVDTypes []string `yaml:"kv_cache_dtypes,flow,omitempty"`
	// Several context windows in tokens, e.g. [512, 1024].
	Contexts []int `yaml:"contexts,flow,omitempty"`
	// Several numbers of threads, e.g. [1, 2].
	ThreadCounts []int `yaml:"thread_counts,flow,omitempty"`
	// To measure with the model file read from disk and from the page cache: [cold, warm].
	Starts []string `yaml:"starts,flow,omitempty"`
	// Weights of WebLLM's packages, e.g. [as-is, f32]: as-is (types that WebLLM lacks become dtype), f32 or f16.
	Weights []string `yaml:"weights,flow,omitempty"`

	VersionLists map[string][]string `yaml:"-"` // of engines that have several versions, by axis
}

// Group is a model with its own engines and lists, which replace those of the plan. A group with only a model can be
// written as the model's name.
type Group struct {
	// Model to run.
	Model string `yaml:"model"`
	// Forms are what engines run, by engine, if each has a form of its own; model is then only a name.
	Forms map[string]string `yaml:"-"`
	// Engines for this model. Default: the plan's.
	Engines    []string `yaml:"engines,flow,omitempty"`
	Axes       `yaml:",inline"`
	Deployment `yaml:",inline"`
}

func (g *Group) read(r *reader, n *document.Node, path string) error {
	if text, ok := n.Single(); ok {
		g.Model = text
		return nil
	}
	if err := n.Group(path, "a model's name or a group with a model"); err != nil {
		return err
	}
	return r.axes(n, g, &g.Axes, nil, path)
}

// forms adds a group's fields for forms to the others: an engine each, and the name. take reads them afterwards.
func (r *reader) forms(g *Group, n *document.Node, to map[string]reflect.Value) (take func() error) {
	name, forms := new(string), map[string]*string{}
	to["name"] = reflect.ValueOf(name).Elem()
	engines := r.kinds.Names()
	for _, e := range n.Fields {
		if k, _ := r.kinds.Of(e.Name); k != nil {
			engines = append(engines, e.Name)
		}
	}
	for _, e := range engines {
		forms[e] = new(string)
		to[e] = reflect.ValueOf(forms[e]).Elem()
	}
	return func() error {
		if g.Model != "" && *name != "" {
			return errors.New("name: cannot be combined with model; remove one")
		}
		g.Model = cmp.Or(g.Model, *name)
		for e, form := range forms {
			g.Forms = with(g.Forms, e, *form, *form != "")
		}
		if *name != "" && g.Forms == nil {
			return errors.New("name: name the model's form for each engine beside it, e.g. llamacpp: my.gguf")
		}
		return nil
	}
}

// scope is what a plan and a model of models have in common. path is the prefix of its fields.
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

// plain reports whether a group only has a model's name.
func (g Group) plain() bool { return reflect.DeepEqual(g, Group{Model: g.Model}) }

// MarshalYAML writes the name alone if nothing else is set.
func (g Group) MarshalYAML() (any, error) {
	if g.plain() {
		return g.Model, nil
	}
	type written Group
	more := g.written()
	for e, form := range g.Forms {
		more[e] = form
	}
	return struct {
		written `yaml:",inline"`
		More    map[string]any `yaml:",inline"`
	}{written(g), more}, nil
}

// Deployment has fields of other tools' plans, which describe a model on a server and how it was started. They enter
// predictions. Package resolve refuses cells that would differ, and reports fields that make no difference.
type Deployment struct {
	// Ignored, with a message: use the address of a server in a container.
	ContainerName string `yaml:"container_name,omitempty"`
	// Number of GPUs of a server (openai), for predictions. Other engines only support 1.
	TensorParallel int `yaml:"tensor_parallel_size,omitempty"`
	// Format of a server's weights, e.g. awq, for predictions. Other engines take it from the model file.
	Quantization string `yaml:"quantization,omitempty"`
	// Ignored, with a message: no engine that llmparity starts reserves GPU memory in advance.
	GPUMemory float64 `yaml:"gpu_memory_utilization,omitempty"`
	// Number of parameters of a model on a server, for predictions.
	Params float64 `yaml:"model_params,omitempty"`
	// Number of layers of a model on a server, for predictions.
	Layers int `yaml:"num_layers,omitempty"`
	// Number of attention heads of a model on a server, for predictions.
	Heads int `yaml:"num_heads,omitempty"`
	// Size of a head of a model on a server, for predictions.
	HeadDim int `yaml:"head_dim,omitempty"`
	// Size of the hidden state of a model on a server, for predictions.
	HiddenSize int `yaml:"hidden_size,omitempty"`
}

// fields are the single value of an axis, *int or *string, and its list, *[]int or *[]string; nil for versions, and
// where there is none.
func (a axis) fields(p *Plan, x *Axes) (one, list any) {
	if a >= axisCount {
		return nil, nil
	}
	of := [axisCount][2]any{ofContext: {&p.Context, &x.Contexts}, ofDType: {&p.DType, &x.DTypes},
		ofKVDType: {&p.KVDType, &x.KVDTypes}, ofWeights: {1: &x.Weights}, ofThreads: {&p.Threads, &x.ThreadCounts},
		ofStart: {&p.Start, &x.Starts},
		ofBatch: {1: &x.BatchSizes}, ofConcurrency: {1: &x.Concurrency}, ofPrompt: {1: &x.InputLengths},
		ofOutput: {&p.MaxTokens, &x.OutputLengths}, ofModel: {0: &p.Model}}[a]
	return of[0], of[1]
}

// values are the values of an axis' list.
func (x *Axes) values(a axis, kinds engine.Kinds) (out []value) {
	_, of := a.fields(new(Plan), x)
	switch list := of.(type) {
	case *[]int:
		for _, n := range *list {
			out = append(out, value{strconv.Itoa(n), n})
		}
		return out
	case *[]string:
		return textValues(*list)
	}
	return textValues(x.VersionLists[a.name(kinds)])
}

func textValues(texts []string) (out []value) {
	for _, text := range texts {
		out = append(out, value{text: text})
	}
	return out
}

// set replaces the list of an axis; no values remove it.
func (x *Axes) set(a axis, kinds engine.Kinds, values []value) {
	var texts []string
	var numbers []int
	for _, v := range values {
		texts, numbers = append(texts, v.text), append(numbers, v.n)
	}
	_, of := a.fields(new(Plan), x)
	switch to := of.(type) {
	case *[]string:
		*to = texts
	case *[]int:
		*to = numbers
	case nil:
		if a >= axisCount {
			x.VersionLists = with(x.VersionLists, a.name(kinds), texts, len(texts) > 0)
		}
	}
}

// WeightsOf returns the form that an engine of a setup stores weights in; empty: its default, or it converts nothing.
func (p Plan) WeightsOf(name string) string {
	if len(p.Weights) != 1 || p.Weights[0] == engine.WeightForms[0] || !p.Kind(name).Concerned(engine.AxisWeights) {
		return ""
	}
	return p.Weights[0]
}

func (x *Axes) rename() {
	for _, list := range [][]string{x.DTypes, x.KVDTypes} {
		for i, text := range list {
			list[i] = ownDType(text)
		}
	}
}

// one is the single value of an axis; ok is false if the axis has no field for one.
func (p *Plan) one(a axis) (v value, ok bool) {
	field, _ := a.fields(p, &p.Axes)
	switch of := field.(type) {
	case *int:
		return value{strconv.Itoa(*of), *of}, true
	case *string:
		return value{text: *of}, true
	}
	return value{text: p.Versions[a.name(p.kinds)]}, a >= axisCount
}

// setOne sets the field of a single value; the zero value clears it.
func (p *Plan) setOne(a axis, v value) {
	field, _ := a.fields(p, &p.Axes)
	switch of := field.(type) {
	case *int:
		*of = v.n
	case *string:
		*of = v.text
	default:
		switch {
		case a == ofWeights && v.text != "":
			p.Weights = []string{v.text}
		case a >= axisCount:
			p.Versions = with(p.Versions, a.name(p.kinds), v.text, v.text != "")
		}
	}
}

// with returns a copy of a map with a value, or without it; nil if it would be empty. Copies of a plan share maps.
func with[V any](m map[string]V, name string, v V, there bool) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}
	if out[name] = v; !there {
		delete(out, name)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Set replaces the values of an axis, also in models. Axes are named by their lists: models, engines, input_lengths and
// so on. A single value sets the field of a single value, if there is one. Validate checks the values afterwards.
func (p *Plan) Set(list string, values ...string) error {
	known := []string{"models"}
	for _, a := range axes(p.kinds) {
		if known = append(known, a.list(p.kinds)); a.list(p.kinds) == list {
			return p.setAxis(a, values)
		}
	}
	if list != "models" {
		do := cmp.Or(nearest.Question(list, known), "axes: "+strings.Join(known, ", "))
		return fmt.Errorf("unknown axis %q; %s", list, do)
	}
	p.Model, p.Models = "", nil
	if len(values) == 1 {
		p.Model = values[0]
		return nil
	}
	for _, name := range values {
		p.Models = append(p.Models, Group{Model: name})
	}
	return nil
}

func (p *Plan) setAxis(a axis, texts []string) error {
	var values []value
	for _, text := range texts {
		v, err := a.value(text)
		if err != nil {
			return fmt.Errorf("%s: %w", a.list(p.kinds), err)
		}
		values = append(values, v)
	}
	if a == ofEngine {
		p.Engines = texts
	}
	if _, ok := p.one(a); ok {
		v := value{}
		if a == ofContext {
			v.n = Unsaid
		}
		if len(values) == 1 {
			v, values = values[0], nil
		}
		p.setOne(a, v)
	}
	p.Axes.set(a, p.kinds, values)
	for i := range p.Models {
		g := &p.Models[i]
		if a == ofEngine {
			g.Engines = nil
		}
		g.Axes.set(a, p.kinds, nil)
	}
	switch a {
	case ofPrompt:
		p.Prompts = nil
	case ofBatch:
		p.Concurrency = nil
	case ofConcurrency:
		p.BatchSizes = nil
		if p.Traffic != nil {
			p.Traffic = copied(p.Traffic)
			p.Traffic.Concurrency = 0
		}
	}
	if a >= axisCount {
		p.unsay(a.list(p.kinds))
	}
	return nil
}

// validateAxes refuses wrong and duplicate values, and lists beside a single value.
func (p Plan) validateAxes() error {
	for _, s := range p.scopes() {
		for _, a := range axes(p.kinds) {
			seen := map[value]bool{}
			for i, v := range s.Axes.values(a, p.kinds) {
				err, text := a.known(v), v.text
				if a.texts() {
					text = strconv.Quote(text)
				}
				if err == nil && seen[v] {
					err = errors.New("duplicate value " + text)
				}
				if err != nil {
					return fmt.Errorf("%s%s[%d]: %w", s.path, a.list(p.kinds), i, err)
				}
				seen[v] = true
			}
		}
	}
	for _, a := range axes(p.kinds) {
		one, ok := p.one(a)
		said := ok && one != value{} && one != value{text: "0"} && one.n != Unsaid
		if said && a != ofOutput && len(p.Axes.values(a, p.kinds)) > 0 {
			return fmt.Errorf("%s: cannot be combined with %s; remove one", a.list(p.kinds), a.name(p.kinds))
		}
	}
	return nil
}

// known refuses values that the axis cannot have.
func (a axis) known(v value) error {
	if a >= axisCount {
		if v.text == "" {
			return errors.New("must be a version such as 0.2.86")
		}
		return nil
	}
	d := dimensions[a]
	switch {
	case d.isText && (v.text == "" && a != ofStart || slices.Contains(d.known, v.text)):
		return nil
	case d.isText:
		return unknown(v.text, d.known)
	case a == ofContext:
		return checkContext(v.n)
	}
	return within(v.n, d.least, d.most)
}

// within refuses numbers outside a range.
func within(n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%d is out of range; use %d to %d", n, least, most)
	}
	return nil
}
