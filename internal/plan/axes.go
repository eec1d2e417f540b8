package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/engine"
	"llmparity/internal/nearest"
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
	Concurrency    []int    `yaml:"concurrency,flow,omitempty"`
	DTypes         []string `yaml:"dtypes,flow,omitempty"`          // of dtype
	KVDTypes       []string `yaml:"kv_cache_dtypes,flow,omitempty"` // of kv_cache_dtype
	WebLLMVersions []string `yaml:"webllm_versions,flow,omitempty"` // of webllm_version
	Contexts       []int    `yaml:"contexts,flow,omitempty"`        // of context
	ThreadCounts   []int    `yaml:"thread_counts,flow,omitempty"`   // of threads
	Starts         []string `yaml:"starts,flow,omitempty"`          // of start
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

// plain tells that a group says no more than its model's name.
func (g Group) plain() bool { return reflect.DeepEqual(g, Group{Model: g.Model}) }

// MarshalYAML writes the name alone where there is no more.
func (g Group) MarshalYAML() (any, error) {
	if g.plain() {
		return g.Model, nil
	}
	type written Group
	return written(g), nil
}

// numbers and texts are the lists by axis, and number and text the plan's fields of one value.
func (x *Axes) numbers() map[axis]*[]int {
	return map[axis]*[]int{ofPrompt: &x.InputLengths, ofOutput: &x.OutputLengths, ofBatch: &x.BatchSizes,
		ofConcurrency: &x.Concurrency, ofContext: &x.Contexts, ofThreads: &x.ThreadCounts}
}

func (x *Axes) texts() map[axis]*[]string {
	return map[axis]*[]string{ofDType: &x.DTypes, ofKVDType: &x.KVDTypes, ofVersion: &x.WebLLMVersions,
		ofStart: &x.Starts}
}

func (p *Plan) number() map[axis]*int {
	return map[axis]*int{ofContext: &p.Context, ofThreads: &p.Threads, ofOutput: &p.MaxTokens}
}

func (p *Plan) text() map[axis]*string {
	return map[axis]*string{ofDType: &p.DType, ofKVDType: &p.KVDType, ofVersion: &p.WebLLMVersion, ofStart: &p.Start}
}

// list is the field that has the axis' list.
func (a axis) list() string {
	if a == ofPrompt {
		return "input_lengths"
	}
	return listOf(axisNames[a])
}

// Set gives an axis the values that a flag has, in place of all that the plan says of it, in groups, too. Axes are
// named as lists: models, engines, input_lengths, output_lengths, batch_sizes, concurrency, dtypes, kv_cache_dtypes,
// webllm_versions, contexts, thread_counts, starts. A single value becomes that of the plan's field of one value,
// where there is one. Whether values are possible Validate says, afterwards.
func (p *Plan) Set(list string, values ...string) error {
	if list == "models" {
		p.setModels(values)
		return nil
	}
	known := []string{"models"}
	for a := range axisCount {
		if known = append(known, a.list()); a.list() == list {
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
	if to, ok := p.Axes.numbers()[a]; ok {
		*to = make([]int, len(values))
		for i, v := range values {
			var err error
			if (*to)[i], err = strconv.Atoi(v); err != nil {
				return fmt.Errorf("%s: %q stands where a whole number is wanted", a.list(), v)
			}
		}
		if one, ok := p.number()[a]; ok {
			unsaid := 0
			if a == ofContext {
				unsaid = Unsaid
			}
			*one = alone(to, unsaid)
		}
	}
	if to, ok := p.Axes.texts()[a]; ok {
		*to = values
		p.Axes.rename()
		*p.text()[a] = alone(to, "")
	}
	p.instead(a, values)
	return nil
}

// instead takes away what else the plan says of an axis that was set.
func (p *Plan) instead(a axis, values []string) {
	for i := range p.Models {
		g := &p.Models[i]
		if list, ok := g.numbers()[a]; ok {
			*list = nil
		}
		if list, ok := g.texts()[a]; ok {
			*list = nil
		}
		if a == ofEngine {
			g.Engines = nil
		}
	}
	switch a {
	case ofEngine:
		p.Engines = values
	case ofPrompt:
		p.Prompts, p.Sources = nil, nil
	case ofVersion:
		p.unsay(engine.AxisVersion)
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
}

// alone takes the one value out of a list that has no other.
func alone[T any](list *[]T, unsaid T) T {
	if len(*list) != 1 {
		return unsaid
	}
	one := (*list)[0]
	*list = nil
	return one
}

// validateAxes looks at lists.
func (p Plan) validateAxes() error {
	if err := p.Axes.validate(""); err != nil {
		return err
	}
	for i, g := range p.Models {
		if err := g.Axes.validate(fmt.Sprintf("models[%d].", i)); err != nil {
			return err
		}
	}
	for a := range axisCount {
		said, listed := false, 0
		if one, ok := p.number()[a]; ok && a != ofOutput {
			said, listed = *one != 0 && *one != Unsaid, len(*p.Axes.numbers()[a])
		}
		if one, ok := p.text()[a]; ok {
			said, listed = *one != "", len(*p.Axes.texts()[a])
		}
		if said && listed > 0 {
			return fmt.Errorf("%s: %s says it too; leave one out", a.list(), axisNames[a])
		}
	}
	return nil
}

func (x Axes) validate(at string) error {
	numbers, texts := x.numbers(), x.texts()
	for a := range axisCount {
		var err error
		if list, ok := numbers[a]; ok {
			err = sound(at+a.list(), *list, strconv.Itoa, func(n int) error { return knownNumber(a, n) })
		}
		if list, ok := texts[a]; ok {
			err = sound(at+a.list(), *list, strconv.Quote, func(v string) error { return knownText(a, v) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// knownNumber refuses a value that a list of numbers can't have, and knownText one of texts.
func knownNumber(a axis, n int) error {
	most := mostTokens
	if a == ofBatch || a == ofConcurrency {
		most = mostClients
	}
	switch {
	case a == ofContext && badContext(n):
		return fmt.Errorf("%d, at least 2 is needed, or 0 for the model's own", n)
	case a != ofContext && (n < 1 || n > most):
		return fmt.Errorf("%d, from 1 to %d are possible", n, most)
	}
	return nil
}

func knownText(a axis, text string) error {
	known := map[axis][]string{ofDType: dtypes(), ofKVDType: kvDTypes(), ofStart: starts()}[a]
	switch {
	case a == ofVersion && text == "":
		return errors.New("a version such as 0.2.86 is needed")
	case known == nil, text == "" && a != ofStart, slices.Contains(known, text):
		return nil
	}
	return unknown(text, known)
}

// sound refuses those of a list that are wrong, or there already.
func sound[T comparable](field string, list []T, show func(T) string, check func(T) error) error {
	seen := make(map[T]bool, len(list))
	for i, v := range list {
		if err := check(v); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		if seen[v] {
			return fmt.Errorf("%s[%d]: %s is there already", field, i, show(v))
		}
		seen[v] = true
	}
	return nil
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
