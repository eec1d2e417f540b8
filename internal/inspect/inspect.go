// Package inspect describes a model's file or folder: its architecture, its size, and which engines here can run it. It
// starts nothing.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/record"
)

// Info describes a model.
type Info struct {
	Kind string `json:"kind"` // gguf, webllm-package, model-library
	record.Model
	Quantization string `json:"quantization,omitempty"` // MLC's name of the format of weights, e.g. q0f32
	// BytesByType is the size of weights by stored type, BytesByComponent also by part of the model.
	BytesByType      map[string]int64            `json:"bytes_by_type,omitempty"`
	BytesByComponent map[string]map[string]int64 `json:"bytes_by_component,omitempty"`
	KV               *KV                         `json:"kv_cache,omitempty"`
	Tokenizer        string                      `json:"tokenizer,omitempty"`
	ChatTemplate     string                      `json:"chat_template,omitempty"`
	Library          *Library                    `json:"library,omitempty"`
	// Engines says what each engine can do with the model.
	Engines map[string]Ability `json:"engines"`
}

// KV is the size of a KV cache.
type KV struct {
	PerTokenF32 int64 `json:"bytes_per_token_f32"`
	PerTokenF16 int64 `json:"bytes_per_token_f16"`
	// ReservedF32 and ReservedF16 are what WebLLM reserves for the context window when it loads the model.
	ReservedF32 int64 `json:"webllm_reserved_bytes_f32"`
	ReservedF16 int64 `json:"webllm_reserved_bytes_f16"`
}

// Library describes a compiled model library.
type Library struct {
	Origin       string           `json:"origin"`
	PrefillChunk int              `json:"prefill_chunk"`
	Sliding      int              `json:"sliding_window"`
	MemoryUsage  map[string]int64 `json:"memory_usage_bytes"` // buffers of each function
}

// Ability says what an engine can do, or why it cannot.
type Ability struct {
	Can    string `json:"can,omitempty"`
	Cannot string `json:"cannot,omitempty"`
}

// Open describes the model at a path. The type is found from the contents, or else from the name. Engines are as
// chosen.
func Open(ctx context.Context, path string, kinds engine.Kinds, choice *engine.Choice) (Info, error) {
	const wanted = "name a GGUF file, a WebLLM package's folder (with mlc-chat-config.json) or a model library (.wasm)"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Info{}, fault.Wrap(fault.BadModel, err, wanted, "cannot read the model")
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(path, "mlc-chat-config.json")); err != nil {
			return Info{}, fault.New(fault.BadModel, wanted, "%s is a folder without a model", path)
		}
		return describePackage(path, kinds)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return Info{}, fault.New(fault.BadModel, wanted, "%s is not a regular file", path)
	}
	switch begin, err := beginning(path); {
	case err != nil:
		return Info{}, fault.Wrap(fault.BadModel, err, wanted, "cannot read the model")
	case begin == "GGUF" || strings.EqualFold(filepath.Ext(path), ".gguf"):
		return describeGGUF(ctx, path, kinds, choice)
	case begin == "\x00asm" || strings.EqualFold(filepath.Ext(path), ".wasm"):
		return describeLibrary(path, kinds)
	}
	return Info{}, fault.New(fault.BadModel, wanted, "%s is not a model", path)
}

// beginning returns up to four bytes of a file.
func beginning(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4))
	return string(b), err
}

func describeGGUF(ctx context.Context, path string, kinds engine.Kinds, choice *engine.Choice) (Info, error) {
	m, err := model.Open(path, 0)
	if err == nil {
		err = m.Unsupported
	}
	if err != nil {
		return Info{}, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	i := Info{Kind: "gguf", Model: m.Model, ChatTemplate: "none"}
	for _, t := range f.Tensors {
		i.weight(t.Name, strings.ToLower(t.Type.String()), t.Size)
	}
	i.KV = kvOf(2*int64(m.Layers)*int64(m.KVHeads)*int64(m.HeadDim), m.Context)
	if v, err := f.Vocabulary(); err != nil {
		i.Tokenizer = err.Error()
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
	i.Engines = map[string]Ability{}
	for _, k := range kinds {
		if k.Runs == nil {
			continue
		}
		err := k.Accepts(ctx, choice.Engine(k.Name), m).Err()
		if err == nil && k.Makes != nil {
			err = k.Makes(m)
		}
		if err != nil {
			i.Engines[k.Name] = Ability{Cannot: err.Error()}
		} else {
			i.Engines[k.Name] = Ability{Can: k.Runs(m.DType)}
		}
	}
	return i, nil
}

// abilities says what engines can do with a package or a library: can or err, if they are for WebLLM.
func abilities(kinds engine.Kinds, can string, err error) map[string]Ability {
	out := map[string]Ability{}
	for _, k := range kinds {
		switch {
		case k.Runs == nil:
		case !slices.Contains(k.Formats, model.WebLLM):
			out[k.Name] = Ability{Cannot: k.Title + " only runs GGUF files"}
		case err != nil:
			out[k.Name] = Ability{Cannot: err.Error()}
		default:
			out[k.Name] = Ability{Can: can}
		}
	}
	return out
}

func describePackage(dir string, kinds engine.Kinds) (Info, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return Info{}, err
	}
	s := p.Shape
	i := Info{Kind: "webllm-package", Quantization: p.Quantization, ChatTemplate: cmp.Or(p.ChatTemplate, "none"),
		Model: record.Model{
			Name: filepath.Base(filepath.Clean(dir)), Format: model.WebLLM, Architecture: s.ModelType,
			DType: p.Quantization, WeightsB: p.Bytes, FileB: p.Bytes, Layers: s.NumHiddenLayers,
			Heads: s.NumAttentionHeads, KVHeads: s.NumKeyValueHeads, HeadDim: s.HeadDim, Hidden: s.HiddenSize,
			Vocab: s.VocabSize, Context: s.ContextWindowSize}}
	var params []mlc.Param
	for _, w := range p.Weights {
		i.weight(w.Name, w.DType, w.Bytes)
		params = append(params, w.Param)
	}
	i.Parameters = values(params)
	i.KV = kvOf(2*int64(s.NumHiddenLayers)*int64(s.NumKeyValueHeads)*int64(s.HeadDim), s.ContextWindowSize)
	i.Tokenizer = strings.Join(p.TokenizerFiles, ", ")
	can, err := webllm.CanPackage(p)
	i.Engines = abilities(kinds, can, err)
	return i, nil
}

func describeLibrary(path string, kinds engine.Kinds) (Info, error) {
	l, err := mlc.OpenLibrary(path)
	if err != nil {
		return Info{}, err
	}
	origin, detail, _ := webllm.OriginOf(path, l)
	i := Info{Kind: "model-library", Quantization: l.Quantization,
		Model: record.Model{Name: filepath.Base(path), Format: "wasm", Architecture: l.ModelType,
			DType: l.Quantization, FileB: l.Bytes, Context: l.ContextWindowSize, Parameters: values(l.Params)},
		Library: &Library{Origin: origin + " (" + detail + ")", PrefillChunk: l.PrefillChunkSize,
			Sliding:     l.SlidingWindowSize,
			MemoryUsage: l.MemoryUsage}}
	if kv := l.KVCache; kv != nil {
		i.Layers, i.Heads, i.KVHeads, i.HeadDim = kv.Layers, kv.Heads, kv.KVHeads, kv.HeadDim
		i.KV = kvOf(2*int64(kv.Layers)*int64(kv.KVHeads)*int64(kv.HeadDim), l.ContextWindowSize)
	}
	can, err := webllm.CanLibrary(l)
	i.Engines = abilities(kinds, can, err)
	return i, nil
}

// weight adds a tensor to the sums.
func (i *Info) weight(name, dtype string, bytes int64) {
	if i.BytesByType == nil {
		i.BytesByType, i.BytesByComponent = map[string]int64{}, map[string]map[string]int64{}
	}
	i.BytesByType[dtype] += bytes
	part := mlc.Component(name)
	if i.BytesByComponent[part] == nil {
		i.BytesByComponent[part] = map[string]int64{}
	}
	i.BytesByComponent[part][dtype] += bytes
}

// values counts a model's parameters; 0 if weights are packed or a shape is open.
func values(params []mlc.Param) int64 {
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

func kvOf(valuesPerToken int64, context int) *KV {
	if valuesPerToken <= 0 || context <= 0 {
		return nil
	}
	kv := &KV{PerTokenF32: 4 * valuesPerToken, PerTokenF16: 2 * valuesPerToken}
	kv.ReservedF32, kv.ReservedF16 = mlc.KVReserved(kv.PerTokenF32, context), mlc.KVReserved(kv.PerTokenF16, context)
	return kv
}

// Print prints the description.
func (i Info) Print(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("kind", "%s", map[string]string{"gguf": "GGUF", "webllm-package": "WebLLM package",
		"model-library": "model library for WebLLM"}[i.Kind])
	row("name", "%s", i.Name)
	if i.SHA256 != "" {
		row("sha256", "%s", i.SHA256)
	}
	row("architecture", "%s", i.architecture())
	if i.Quantization != "" {
		row("quantization", "%s", i.Quantization)
	}
	if i.Parameters > 0 {
		row("parameters", "%d", i.Parameters)
	}
	if i.WeightsB > 0 {
		row("weights", "%s, in files of %s", mib(i.WeightsB), mib(i.FileB))
	}
	for _, part := range slices.Sorted(maps.Keys(i.BytesByComponent)) {
		var words []string
		for _, dtype := range slices.Sorted(maps.Keys(i.BytesByComponent[part])) {
			words = append(words, mib(i.BytesByComponent[part][dtype])+" "+dtype)
		}
		row("  "+part, "%s", strings.Join(words, ", "))
	}
	if i.Kind == "gguf" {
		row("in a browser", "weights take %s as f32, %s as f16", mib(4*i.Parameters), mib(2*i.Parameters))
	}
	row("context", "%d tokens", i.Context)
	if kv := i.KV; kv != nil {
		row("KV cache", "f32: %d bytes per token, WebLLM reserves %s; f16: %d bytes per token, WebLLM reserves %s",
			kv.PerTokenF32, mib(kv.ReservedF32), kv.PerTokenF16, mib(kv.ReservedF16))
	}
	if i.Tokenizer != "" {
		row("tokenizer", "%s, %d tokens", i.Tokenizer, i.Vocab)
	}
	if i.ChatTemplate != "" {
		row("chat template", "%s", i.ChatTemplate)
	}
	if l := i.Library; l != nil {
		row("library", "%s, %s, prefill in chunks of %d tokens", l.Origin, mib(i.FileB), l.PrefillChunk)
		for _, function := range slices.Sorted(maps.Keys(l.MemoryUsage)) {
			row("  "+function, "%d bytes of buffers", l.MemoryUsage[function])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Engines)) {
		a := i.Engines[name]
		if a.Cannot != "" {
			row(name, "cannot: %s", a.Cannot)
			continue
		}
		row(name, "%s", a.Can)
	}
}

func (i Info) architecture() string {
	if i.Layers == 0 {
		return i.Architecture
	}
	words := fmt.Sprintf("%s: %d layers", i.Architecture, i.Layers)
	if i.Hidden > 0 {
		words += fmt.Sprintf(", hidden size %d", i.Hidden)
	}
	return words + fmt.Sprintf(", %d heads, %d key-value heads, head size %d", i.Heads, i.KVHeads, i.HeadDim)
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/record.MiB) }
