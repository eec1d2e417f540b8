package models

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/record"
)

// Facts describe a model's file or folder.
type Facts struct {
	record.Model
	Parts        int    `json:"parts,omitempty"`        // files of a split GGUF
	Quantization string `json:"quantization,omitempty"` // MLC's name of the format of weights, e.g. q0f32
	// BytesByType is the size of weights by stored type, BytesByComponent also by part of the model.
	BytesByType      map[string]int64            `json:"bytes_by_type,omitempty"`
	BytesByComponent map[string]map[string]int64 `json:"bytes_by_component,omitempty"`
	KV               *KV                         `json:"kv_cache,omitempty"`
	Packaged         *Packed                     `json:"webllm_weights,omitempty"`
	Tokenizer        string                      `json:"tokenizer,omitempty"`
	ChatTemplate     string                      `json:"chat_template,omitempty"`
	Library          *Library                    `json:"library,omitempty"`
	Notes            []string                    `json:"notes,omitempty"`
	// Damaged says which shard of a package has another MD5 than its list, and what to do.
	Damaged string `json:"damaged,omitempty"`

	model Model // as Find describes it; zero: no engine can be asked
}

// Loaded returns the model for engines; its path is empty if they cannot be asked.
func (f *Facts) Loaded() Model { return f.model }

// KV is the size of a KV cache.
type KV struct {
	PerTokenF32 int64 `json:"bytes_per_token_f32"`
	PerTokenF16 int64 `json:"bytes_per_token_f16"`
	// ReservedF32 and ReservedF16 are what WebLLM reserves for the context window when it loads the model.
	ReservedF32 int64 `json:"webllm_reserved_bytes_f32"`
	ReservedF16 int64 `json:"webllm_reserved_bytes_f16"`
}

// Packed is the size of the weights of a GGUF's package for WebLLM, which keeps the types of its matrices, by the
// dtype of activations.
type Packed struct {
	F32 int64 `json:"bytes_f32"`
	F16 int64 `json:"bytes_f16"`
}

// Library describes a compiled model library.
type Library struct {
	Origin       string           `json:"origin"`
	PrefillChunk int              `json:"prefill_chunk"`
	Sliding      int              `json:"sliding_window"`
	MemoryUsage  map[string]int64 `json:"memory_usage_bytes"` // buffers of each function
}

func ggufFacts(ctx context.Context, path string) (Facts, error) {
	m, err := Open(ctx, path, 0)
	if err != nil {
		return Facts{}, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return Facts{}, err
	}
	defer f.Close()
	i := Facts{Model: m.Model, ChatTemplate: "none", Parts: len(m.Parts), model: m}
	for _, t := range f.Tensors {
		i.weight(t.Name, strings.ToLower(t.Type.String()), t.Size)
	}
	i.KV = kvOf(2*int64(m.Layers)*int64(m.KVHeads)*int64(m.HeadDim), m.Context)
	if e, err := modelsize.FromGGUF(f); err == nil && e.AsIs != nil {
		i.Packaged = &Packed{F32: total(e.AsIs["f32"]), F16: total(e.AsIs["f16"])}
	}
	if _, there := f.Lookup("tokenizer.chat_template"); there {
		i.ChatTemplate = "its own"
	}
	if v, err := f.Vocabulary(); err != nil {
		i.Tokenizer = fault.What(err)
	} else {
		i.Tokenizer = "byte-level BPE, " + v.Pre
		if v.Kind == gguf.SentencePiece {
			i.Tokenizer = "SentencePiece"
		}
		if name, known := mlc.ChatTemplate(v); known {
			i.ChatTemplate = name
		} else if name != "" {
			i.ChatTemplate = "unknown; packages use " + name
		}
	}
	return i, nil
}

// configFacts describes a model by a Hugging Face configuration, and the safetensors files beside it.
func configFacts(_ context.Context, path string) (Facts, error) {
	m, err := Sizes(path)
	if err != nil {
		return Facts{}, err
	}
	i := Facts{BytesByType: m.Stored, Notes: m.Notes,
		Model: record.Model{Name: m.Name, Format: HuggingFace, Architecture: m.Type, DType: m.DType,
			Parameters: m.Parameters,
			Layers:     m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, Hidden: m.Hidden, Vocab: m.Vocab,
			Context: m.MaxContext, MaxContext: m.MaxContext}}
	for _, bytes := range m.Stored {
		i.WeightsB, i.FileB = i.WeightsB+bytes, i.FileB+bytes
	}
	i.KV = kvOf(hfconfig.KVValues(m.Caches), m.MaxContext)
	return i, nil
}

func packageFacts(ctx context.Context, dir string) (Facts, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return Facts{}, err
	}
	s := p.Shape
	i := Facts{Quantization: p.Quantization, ChatTemplate: cmp.Or(p.ChatTemplate, "none"),
		Model: record.Model{
			Name: filepath.Base(filepath.Clean(dir)), Format: WebLLM, Architecture: s.ModelType,
			DType: p.Quantization, WeightsB: p.Bytes, FileB: p.Bytes, Layers: s.NumHiddenLayers,
			Heads: s.NumAttentionHeads, KVHeads: s.NumKeyValueHeads, HeadDim: s.HeadDim, Hidden: s.HiddenSize,
			Vocab: s.VocabSize, Context: s.ContextWindowSize}}
	for _, w := range p.Weights {
		i.weight(w.Name, w.DType, w.Bytes)
	}
	i.Parameters = Values(p.Params())
	i.KV = kvOf(2*int64(s.NumHiddenLayers)*int64(s.NumKeyValueHeads)*int64(s.HeadDim), s.ContextWindowSize)
	i.Tokenizer = strings.Join(p.TokenizerFiles, ", ")
	if err := mlc.Intact(ctx, dir, p.Shards); err != nil {
		if ctx.Err() != nil {
			return Facts{}, err
		}
		i.Damaged = err.Error() + "; make or download it again"
	}
	return i, nil
}

// LibraryFacts describes a compiled model library, whose origin is known to the engine that it is for.
func LibraryFacts(path string, l mlc.Library, origin string) Facts {
	i := Facts{Quantization: l.Quantization,
		Model: record.Model{Name: filepath.Base(path), Format: "wasm", Architecture: l.ModelType,
			DType: l.Quantization, FileB: l.Bytes, Context: l.ContextWindowSize, Parameters: Values(l.Params)},
		Library: &Library{Origin: origin, PrefillChunk: l.PrefillChunkSize,
			Sliding:     l.SlidingWindowSize,
			MemoryUsage: l.MemoryUsage}}
	if kv := l.KVCache; kv != nil {
		i.Layers, i.Heads, i.KVHeads, i.HeadDim = kv.Layers, kv.Heads, kv.KVHeads, kv.HeadDim
		i.KV = kvOf(2*int64(kv.Layers)*int64(kv.KVHeads)*int64(kv.HeadDim), l.ContextWindowSize)
	}
	return i
}

// weight adds a tensor to the sums.
func (f *Facts) weight(name, dtype string, bytes int64) {
	if f.BytesByType == nil {
		f.BytesByType, f.BytesByComponent = map[string]int64{}, map[string]map[string]int64{}
	}
	f.BytesByType[dtype] += bytes
	part := mlc.Component(name)
	if f.BytesByComponent[part] == nil {
		f.BytesByComponent[part] = map[string]int64{}
	}
	f.BytesByComponent[part][dtype] += bytes
}

// Values counts a model's parameters; 0 if weights are packed or a shape is open.
func Values(params []mlc.Param) int64 {
	var n int64
	for _, p := range params {
		if !strings.Contains(p.DType, "float") {
			return 0
		}
		one := int64(1)
		for _, size := range p.Shape {
			if size == mlc.AnyDim {
				return 0
			}
			one *= size
		}
		n += one
	}
	return n
}

func total(sizes []int64) (n int64) {
	for _, one := range sizes {
		n += one
	}
	return n
}

func kvOf(valuesPerToken int64, context int) *KV {
	if valuesPerToken <= 0 || context <= 0 {
		return nil
	}
	kv := &KV{PerTokenF32: 4 * valuesPerToken, PerTokenF16: 2 * valuesPerToken}
	kv.ReservedF32, kv.ReservedF16 = mlc.KVReserved(kv.PerTokenF32, context), mlc.KVReserved(kv.PerTokenF16, context)
	return kv
}
