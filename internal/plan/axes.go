package plan

// Axes are lists: every combination of their values is asked of every engine. An empty one is what the plan's field of one value says,
// which must be empty where there is a list: DType of DTypes, MaxTokens of OutputLengths, Prompts of InputLengths, and so on.
type Axes struct {
	InputLengths   []int    `yaml:"input_lengths,flow,omitempty"`   // in tokens, by the model's own count, in place of prompts
	OutputLengths  []int    `yaml:"output_lengths,flow,omitempty"`  // in tokens, in place of max_tokens
	BatchSizes     []int    `yaml:"batch_sizes,flow,omitempty"`     // requests that are sent in one moment
	Concurrency    []int    `yaml:"concurrency,flow,omitempty"`     // clients, of which each asks again when it was answered
	DTypes         []string `yaml:"dtypes,flow,omitempty"`          // of dtype
	KVDTypes       []string `yaml:"kv_cache_dtypes,flow,omitempty"` // of kv_cache_dtype
	WebLLMVersions []string `yaml:"webllm_versions,flow,omitempty"` // of webllm_version
	Contexts       []int    `yaml:"contexts,flow,omitempty"`        // of context
	ThreadCounts   []int    `yaml:"thread_counts,flow,omitempty"`   // of threads
	Starts         []string `yaml:"starts,flow,omitempty"`          // of start
}

// Group is a model of `models`, with axes of its own in place of the plan's.
type Group struct {
	Model      string   `yaml:"model"` // or model_id
	Engines    []string `yaml:"engines,flow,omitempty"`
	Axes       `yaml:",inline"`
	Deployment `yaml:",inline"`
}

// Deployment is what other tools' plans say of where and how a model is served, and of the model itself. No engine here does otherwise for
// it: Unserved says what of it asks for something that isn't here.
type Deployment struct {
	ContainerName  string  `yaml:"container_name,omitempty"`
	TensorParallel int     `yaml:"tensor_parallel_size,omitempty"`
	Quantization   string  `yaml:"quantization,omitempty"`
	GPUMemory      float64 `yaml:"gpu_memory_utilization,omitempty"`
	// Of the model, for forecasts where its own files can't be read.
	Params     float64 `yaml:"model_params,omitempty"`
	Layers     int     `yaml:"num_layers,omitempty"`
	Heads      int     `yaml:"num_heads,omitempty"`
	HeadDim    int     `yaml:"head_dim,omitempty"`
	HiddenSize int     `yaml:"hidden_size,omitempty"`
}

// Cells are values of axes, by the name of one value (model, engine, input_length, output_length, batch_size, concurrency, dtype,
// kv_cache_dtype, webllm_version, context, threads, start, prompt): of exclude, the cells that are left out; of include, what is set or added.
type Cells map[string][]string
