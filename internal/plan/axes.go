package plan

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
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
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
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
