package modelsize

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
)

// FromConfig takes over a Hugging Face configuration.
func FromConfig(c hfconfig.Model) Model {
	m := Model{Model: c, Source: "hf-config", LongestIn: "max_position_embeddings in config.json",
		Parameters: c.Parameters(), Active: c.ActiveParameters(), Trust: High}
	if c.Experts > 0 { // a token uses several
		var wide int64
		for _, w := range c.Weights {
			if strings.HasSuffix(w.Name, "experts.*.up_proj.weight") && w.Times > 0 {
				wide = w.Rows * int64(c.ActiveExperts)
			}
			if strings.HasSuffix(w.Name, "shared_expert.up_proj.weight") {
				wide += w.Rows
			}
		}
		m.Inter = int(max(wide, 1))
	}
	return m
}

// FromHub reads a config.json; of a folder, also the headers of the safetensors files beside it.
func FromHub(path string) (Model, error) {
	c, err := hfconfig.Open(path)
	if err != nil {
		return Model{}, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return FromConfig(c), err
	}
	m := FromConfig(c)
	files, err := hfconfig.Safetensors(path)
	if len(files.Bytes) == 0 {
		return m, err
	}
	m.Stored = files.Bytes
	if n := files.Values; m.Quantized == nil && math.Abs(float64(n-m.Parameters)) > 0.02*float64(max(n, m.Parameters)) {
		m.note("the safetensors files have %d values, but the config's sizes add up to %d", n, m.Parameters)
		m.Trust = Medium
	}
	return m, err
}

// lump adds a weight of which only the number of values is known.
func (m *Model) lump(values int64) {
	if values > 0 {
		m.Weights = append(m.Weights, hfconfig.Weight{Part: hfconfig.Whole, Name: "weights", Times: 1, Rows: values,
			Cols: 1, Split: hfconfig.Sharded, Active: 1})
	}
}

// FromPackage reads a WebLLM package and the library in its folder.
func FromPackage(dir string) (Model, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return Model{}, err
	}
	m, err := fromExisting(filepath.Base(filepath.Clean(dir)), p)
	if err == nil && p.Library != "" {
		err = m.With(p.Library)
	}
	return m, err
}

// FromLists reads a WebLLM package's configuration and its list of weights, without the weights themselves.
func FromLists(name string, config, weights []byte) (Model, error) {
	p, err := mlc.Described(config, weights)
	if err != nil {
		return Model{}, fault.Wrap(fault.BadModel, err, "", "package %s", name)
	}
	return fromExisting(name, p)
}

// fromExisting takes a package's weights as they are in memory: a float32 stored as bfloat16 has four bytes there.
func fromExisting(name string, p mlc.Existing) (Model, error) {
	s := p.Shape
	m := Model{Model: hfconfig.Model{Name: name, Type: s.ModelType, Layers: s.NumHiddenLayers, Hidden: s.HiddenSize,
		Heads: s.NumAttentionHeads, KVHeads: s.NumKeyValueHeads, HeadDim: s.HeadDim, Vocab: s.VocabSize,
		MaxContext: p.Longest(), DType: p.Quantization, Inter: s.IntermediateSize},
		Source: "webllm-package", Only: packageFormat,
		LongestIn: "of its mlc-chat-config.json", Chunk: s.PrefillChunkSize,
		Stored: map[string]int64{}, Trust: High}
	for _, w := range p.Weights {
		loaded, err := mlc.StoredBytes(w.DType, "", w.Shape)
		if err != nil {
			return m, fault.Wrap(fault.BadModel, err, "", "package %s: weight %q", name, w.Name)
		}
		m.Tensors = append(m.Tensors, w.Bytes)
		m.Stored[strings.ToLower(w.DType)] += loaded
		m.Largest = max(m.Largest, loaded)
		if strings.Contains(w.DType, "float") && !strings.HasPrefix(p.Quantization, "q0") {
			continue // scales and unquantised weights
		}
		n := int64(1)
		for _, size := range w.Shape {
			n *= max(size, 1)
		}
		m.lump(n)
		m.Parameters += n
	}
	if !strings.HasPrefix(p.Quantization, "q0") {
		m.Parameters = 0 // unknown: the weights are packed
	}
	m.paged()
	return m, nil
}

// With takes over what a library reports, instead of one beside the weights.
func (m *Model) With(library string) error {
	lib, err := mlc.OpenLibrary(library)
	if err != nil {
		return err
	}
	m.Library = &lib
	m.Chunk = cmp.Or(lib.PrefillChunkSize, m.Chunk)
	if kv := lib.KVCache; kv != nil {
		m.Layers, m.Heads, m.KVHeads, m.HeadDim = kv.Layers, kv.Heads, kv.KVHeads, kv.HeadDim
	}
	m.paged()
	return nil
}

// paged sets a KV cache that is the same in all layers.
func (m *Model) paged() {
	if m.Layers > 0 && m.KVHeads > 0 && m.HeadDim > 0 {
		one := int64(m.KVHeads) * int64(m.HeadDim)
		m.Caches = []hfconfig.Cache{{Layers: m.Layers, Values: 2 * one, Keys: one, Heads: m.KVHeads}}
	}
}
