package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"llmparity/internal/axis"
	"llmparity/internal/dtype"
	"llmparity/internal/kit/document"
	"llmparity/internal/kit/nearest"
)

// lists are the lists of fields of a single value. Versions have one as well.
var lists = listsOf(Fields(nil))

func listsOf(fields []*Field) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		out[f.Name] = f.List
	}
	out[axis.Prompt], out[axis.Input], out["max_tokens"] = "prompts", "input_lengths", "output_lengths"
	return out
}

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

// Deployment has fields of other tools' plans, which describe a model on a server and how it is started. They enter
// predictions, and the command of a server that llmparity starts. Package resolve refuses cells that would differ, and
// reports fields that make no difference.
type Deployment struct {
	// Running container of Docker or Podman in which native engines are started, or that has the server of openai. A
	// plan with it and without engines means vllm.
	ContainerName string `yaml:"container_name,omitempty"`
	// Number of GPUs of a server: vllm, sglang and server are started with it, for openai it enters predictions. Other
	// engines only support 1.
	TensorParallel int `yaml:"tensor_parallel_size,omitempty"`
	// Format of a server's weights, e.g. awq, as tensor_parallel_size. Other engines take it from the model file.
	Quantization string `yaml:"quantization,omitempty"`
	// Share of each GPU's memory that vllm, sglang or server reserves. Other engines ignore it, with a message.
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

func (x *Axes) rename() {
	for _, list := range [][]string{x.DTypes, x.KVDTypes} {
		for i, text := range list {
			list[i] = ownDType(text)
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
	var known []string
	for _, f := range Fields(p.kinds) {
		if known = append(known, f.List); f.List == list {
			return p.setField(f, values)
		}
	}
	do := cmp.Or(nearest.Question(list, known), "axes: "+strings.Join(known, ", "))
	return fmt.Errorf("unknown axis %q; %s", list, do)
}

func (p *Plan) setField(f *Field, given []string) error {
	var values []Value
	for _, text := range given {
		v, err := f.value(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.List, err)
		}
		values = append(values, v)
	}
	switch f.Name { // what sets the same is removed
	case axis.Model:
		p.Models = nil
		if len(values) > 1 {
			for _, name := range given {
				p.Models = append(p.Models, Group{Model: name})
			}
		}
	case axis.Engine:
		p.Engines = given
	case axis.Prompt:
		p.Prompts = nil
	case axis.BatchSize:
		p.Concurrency = nil
	case axis.Concurrency:
		p.BatchSizes = nil
		if p.Traffic != nil {
			p.Traffic = copied(p.Traffic)
			p.Traffic.Concurrency = 0
		}
	}
	if _, ok := f.single(p); ok {
		v := Value{N: f.none}
		if len(values) == 1 {
			v, values = values[0], nil
		}
		f.setSingle(p, v)
	}
	f.setList(&p.Axes, values)
	for i := range p.Models {
		g := &p.Models[i]
		if f.Name == axis.Engine {
			g.Engines = nil
		}
		f.setList(&g.Axes, nil)
	}
	if f.ofVersion() {
		p.unsay(f.List)
	}
	return nil
}

// validateAxes refuses wrong and duplicate values, and lists beside a single value.
func (p Plan) validateAxes() error {
	fields := Fields(p.kinds)
	for _, s := range p.scopes() {
		for _, f := range fields {
			seen := map[Value]bool{}
			for i, v := range f.values(&s.Axes) {
				err, text := f.known(v), v.Text
				if f.Text() {
					text = strconv.Quote(text)
				}
				if err == nil && seen[v] {
					err = errors.New("duplicate value " + text)
				}
				if err != nil {
					return fmt.Errorf("%s%s[%d]: %w", s.path, f.List, i, err)
				}
				seen[v] = true
			}
		}
	}
	for _, f := range fields {
		if f.said(&p) && f.Name != axis.Output && len(f.values(&p.Axes)) > 0 {
			return fmt.Errorf("%s: cannot be combined with %s; remove one", f.List, f.Name)
		}
	}
	return nil
}
