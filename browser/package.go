package browser

import (
	"fmt"

	"llmparity/internal/record"
)

// Package is a model as WebLLM wants it.
type Package struct {
	Dir          string // mlc-chat-config.json, tensor-cache.json, shards, tokenizer
	ID           string
	DType        string // F32 or F16: of weights, activations and KV cache
	Library      Library
	Policy       map[string]string // what a reader must know of how it was made: kv_dtype …
	Warnings     []record.Warning  // what a reader of any figure made with it must know
	Context      int               // tokens
	PrefillChunk int
	Overrides    map[string]any // of mlc-chat-config.json
}

// Library is a compiled model library: the code beside a model's weights. No figure means anything without knowing
// which.
type Library struct {
	Path   string // the .wasm
	SHA256 string
	Bytes  int64
	Origin string // Ours, MLC or Given
	Detail string // which one: its variant, or its name
	Source string // an address, or the path that was given; empty: compiled here
	// Kernels tells for which kind of adapter it was compiled, as Target does; empty: not known.
	Kernels string
}

// The origins of a model library.
const (
	Ours  = "ours"
	MLC   = "MLC's"
	Given = "given"
)

func (l Library) String() string {
	if l.Detail == "" {
		return l.Origin
	}
	return fmt.Sprintf("%s (%s)", l.Origin, l.Detail)
}

// Target is what a package is made for.
type Target struct {
	Kernels string // SoftwareKernels or GPUKernels
	DType   string // F32 or F16
	Bundle  Bundle // that runs it
}

// Kernels and types of numbers that a model library may have.
const (
	AutoKernels     = "auto" // by the adapter
	SoftwareKernels = "software"
	GPUKernels      = "gpu"
	F32             = "f32"
	F16             = "f16"
)
