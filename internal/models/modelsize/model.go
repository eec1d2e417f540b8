// Package modelsize reads the sizes of a model, for estimates: from a GGUF, a WebLLM package, a Hugging Face
// config.json, safetensors files, or from sizes alone. It reads headers and lists, never weights.
package modelsize

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
)

// Confidence is how far a figure can be trusted.
type Confidence string

// The levels of confidence: calculated from known sizes; from a rule that was checked against measurements; from a rule
// of thumb.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Model describes a model, from wherever it is read, as a config would. Zero sizes are unknown. Inter is the width of
// the feed-forward part that a token uses.
type Model struct {
	hfconfig.Model
	Source     string // gguf, webllm-package, catalogue, hf-config, safetensors, numbers
	Only       string // the format that an engine must load to hold these weights; "": others hold them, too
	LongestIn  string // where the maximum context stands; "": nowhere
	Parameters int64
	Active     int64 // parameters used for a token; 0: all
	// Stored holds the bytes of the weights by type, as the files have them; nil: calculated from Weights.
	Stored     map[string]int64
	Matrices   map[string]int64 // the part of Stored that llama.cpp may repack for the processor
	Trust      Confidence       // in parameters and shapes
	CacheTrust Confidence       // in the shape of the KV cache; "": as Trust
	Library    *mlc.Library     // of a WebLLM package
	Tensors    []int64          // bytes of a package's weights in load order
	// AsIs holds, by dtype of activations (f32, f16), the same for the package of a GGUF that keeps the types of its
	// matrices; nil if it cannot be converted.
	AsIs    map[string][]int64
	Chunk   int     // prefill chunk of a package
	Largest int64   // bytes of a package's largest tensor
	Stated  *Stated // memory that a catalogue states, if the sizes are unknown
}

// Stated is the memory that a catalogue states for a model whose sizes are unknown.
type Stated struct {
	By      string // the catalogue
	Bytes   int64  // weights, KV cache and workspaces together
	Context int    // the context that it holds for; 0: not stated
	Buffer  int64  // largest buffer; 0: not stated
	F16     bool   // computes in float16
	// PerToken is the KV cache of a token, by which other contexts differ; 0: unknown.
	PerToken int64
}

// quantized finds the format of the weights in a model's id.
var quantized = regexp.MustCompile(`(?:^|[-_])(q[0348](?:f16|f32|bf16)(?:_(?:[0-2]|ft))?)(?:[-_]|$)`)

// FromStatement returns a model of which only the statement of WebLLM's catalogue is known.
func FromStatement(id string, s Stated) Model {
	m := Model{Source: "catalogue", Only: packageFormat, Stated: &s, Trust: Low}
	m.Name = id
	if name := quantized.FindStringSubmatch(id); name != nil {
		m.DType = name[1]
	}
	return m
}

// packageFormat is the name of packages among formats.
const packageFormat = "webllm"

// Dominant returns the type with the most bytes.
func Dominant(stored map[string]int64) string {
	most := ""
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if most == "" || stored[name] > stored[most] {
			most = name
		}
	}
	return most
}

// GGUF reports whether it was read from a GGUF.
func (m Model) GGUF() bool { return m.Source == "gguf" }

// Noted returns the model with a note before its own.
func (m Model) Noted(format string, args ...any) Model {
	m.Notes = append([]string{fmt.Sprintf(format, args...)}, m.Notes...)
	return m
}
