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
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/record"
)

// Info describes a model.
type Info struct {
	Kind string `json:"kind"` // gguf, webllm-package, webllm-catalogue, model-library, hf-config
	record.Model
	Parts        int    `json:"parts,omitempty"`        // files of a split GGUF
	Quantization string `json:"quantization,omitempty"` // MLC's name of the format of weights, e.g. q0f32
	// BytesByType is the size of weights by stored type, BytesByComponent also by part of the model.
	BytesByType      map[string]int64            `json:"bytes_by_type,omitempty"`
	BytesByComponent map[string]map[string]int64 `json:"bytes_by_component,omitempty"`
	KV               *KV                         `json:"kv_cache,omitempty"`
	Packaged         *Packaged                   `json:"webllm_weights,omitempty"`
	Tokenizer        string                      `json:"tokenizer,omitempty"`
	ChatTemplate     string                      `json:"chat_template,omitempty"`
	Library          *Library                    `json:"library,omitempty"`
	Notes            []string                    `json:"notes,omitempty"`
	// Damaged says which shard of a package has another MD5 than its list, and what to do.
	Damaged string `json:"damaged,omitempty"`
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

// Packaged is the size of the weights of a GGUF's package for WebLLM, which keeps the types of its matrices, by the
// dtype of activations.
type Packaged struct {
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

// Ability says what an engine can do, or why it cannot, or why only the engine knows.
type Ability struct {
	Can     string `json:"can,omitempty"`
	Cannot  string `json:"cannot,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Open describes a model by its name or path. The type is found from the contents, or else from the name. Engines are
// as chosen.
func Open(ctx context.Context, name string, kinds engine.Kinds, choice *engine.Choice) (Info, error) {
	const wanted = "name a GGUF file, a WebLLM package's folder, a model library (.wasm), or a Hugging Face folder or " +
		"its config.json"
	path, err := models.Path(name)
	if err != nil {
		return Info{}, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Info{}, fault.Wrap(fault.BadModel, err, wanted, "cannot read the model")
	case info.IsDir() && exists(filepath.Join(path, "mlc-chat-config.json")):
		return describePackage(ctx, path, kinds)
	case info.IsDir() && hfconfig.Exists(path), filepath.Ext(path) == ".json" && info.Mode().IsRegular():
		return describeConfig(path, kinds)
	case info.IsDir():
		return Info{}, fault.New(fault.BadModel, wanted, "%s is a folder without a model", path)
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
	m, err := models.Open(ctx, path, 0)
	if err != nil {
		return Info{}, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	i := Info{Kind: "gguf", Model: m.Model, ChatTemplate: "none", Parts: len(m.Parts)}
	for _, t := range f.Tensors {
		i.weight(t.Name, strings.ToLower(t.Type.String()), t.Size)
	}
	i.KV = kvOf(2*int64(m.Layers)*int64(m.KVHeads)*int64(m.HeadDim), m.Context)
	if e, err := modelsize.FromGGUF(f); err == nil && e.AsIs != nil {
		i.Packaged = &Packaged{F32: sum(e.AsIs["f32"]), F16: sum(e.AsIs["f16"])}
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
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability { return ability(ctx, k, choice.Engine(k.Name), m) })
	return i, nil
}

// ability says what an engine can do with a GGUF.
func ability(ctx context.Context, k *engine.Kind, e engine.Engine, m models.Model) Ability {
	v := k.Accepts(ctx, e, m)
	err := v.Err()
	if err == nil && k.CannotMake != nil {
		err = k.CannotMake(m)
	}
	if err == nil && v.Answer == engine.Unknown {
		return Ability{Unknown: v.Reason.Error()}
	}
	return abilityOf(k.Runs(m.DType), err)
}

// describeConfig describes a model by a Hugging Face configuration, and the safetensors files beside it.
func describeConfig(path string, kinds engine.Kinds) (Info, error) {
	m, err := modelsize.Open(path)
	if err != nil {
		return Info{}, err
	}
	i := Info{Kind: "hf-config", BytesByType: m.Stored, Notes: m.Notes,
		Model: record.Model{Name: m.Name, Format: "hf", Architecture: m.Type, DType: m.DType, Parameters: m.Parameters,
			Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, Hidden: m.Hidden, Vocab: m.Vocab,
			Context: m.MaxContext, MaxContext: m.MaxContext}}
	for _, bytes := range m.Stored {
		i.WeightsB, i.FileB = i.WeightsB+bytes, i.FileB+bytes
	}
	i.KV = kvOf(hfconfig.KVValues(m.Caches), m.MaxContext)
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		return Ability{Cannot: k.Title + " needs a GGUF; llama.cpp's convert_hf_to_gguf.py makes one"}
	})
	return i, nil
}

// abilities says what each engine that loads models from files can do.
func abilities(kinds engine.Kinds, of func(*engine.Kind) Ability) map[string]Ability {
	out := map[string]Ability{}
	for _, k := range kinds {
		if k.Runs != nil {
			out[k.Name] = of(k)
		}
	}
	return out
}

// abilityOf is what an engine can do, or why it cannot.
func abilityOf(can string, err error) Ability {
	if err != nil {
		return Ability{Cannot: err.Error()}
	}
	return Ability{Can: can}
}

func describePackage(ctx context.Context, dir string, kinds engine.Kinds) (Info, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return Info{}, err
	}
	s := p.Shape
	i := Info{Kind: "webllm-package", Quantization: p.Quantization, ChatTemplate: cmp.Or(p.ChatTemplate, "none"),
		Model: record.Model{
			Name: filepath.Base(filepath.Clean(dir)), Format: models.WebLLM, Architecture: s.ModelType,
			DType: p.Quantization, WeightsB: p.Bytes, FileB: p.Bytes, Layers: s.NumHiddenLayers,
			Heads: s.NumAttentionHeads, KVHeads: s.NumKeyValueHeads, HeadDim: s.HeadDim, Hidden: s.HiddenSize,
			Vocab: s.VocabSize, Context: s.ContextWindowSize}}
	for _, w := range p.Weights {
		i.weight(w.Name, w.DType, w.Bytes)
	}
	i.Parameters = values(p.Params())
	i.KV = kvOf(2*int64(s.NumHiddenLayers)*int64(s.NumKeyValueHeads)*int64(s.HeadDim), s.ContextWindowSize)
	i.Tokenizer = strings.Join(p.TokenizerFiles, ", ")
	if err := mlc.Intact(ctx, dir, p.Shards); err != nil {
		if ctx.Err() != nil {
			return Info{}, err
		}
		i.Damaged = err.Error() + "; make or download it again"
		i.Engines = abilities(kinds, func(*engine.Kind) Ability { return Ability{Cannot: "the package is damaged"} })
		return i, nil
	}
	own := abilityOf(webllm.CanPackage(p))
	g, err := mlc.AsGGUF(dir, i.Name)
	converted := ""
	if err == nil {
		converted = fmt.Sprintf("runs it as a GGUF, %s, %s (llmparity run --model FOLDER)", g.File.Dominant(), g.Same)
	}
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		if slices.Contains(k.Formats, models.WebLLM) {
			return own
		}
		return abilityOf(converted, err)
	})
	return i, nil
}

// Catalogued describes a model of the catalogue that is not downloaded.
func Catalogued(e catalogue.Entry, kinds engine.Kinds) Info {
	i := Info{Kind: "webllm-catalogue",
		Model: record.Model{Name: e.ID, Format: models.WebLLM, Context: max(e.Context(), 0)},
		Notes: []string{"not downloaded; llmparity run downloads the chat models of the catalogue",
			"package: " + e.Model, "model library: " + e.Library,
			"GPU memory, as WebLLM states it: " + words.Size(int64(e.VRAM*record.MiB))}}
	can := "downloads and runs it"
	if e.Needs(catalogue.ShaderF16) {
		can += ", if the WebGPU adapter has " + catalogue.ShaderF16
	}
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		switch {
		case e.Type != catalogue.Chat:
			return Ability{Cannot: "it is no chat model (" + e.Type.String() + ")"}
		case slices.Contains(k.Formats, models.WebLLM):
			return Ability{Can: can}
		}
		return Ability{Unknown: "whether the package can become a GGUF is known after the download"}
	})
	return i
}

func describeLibrary(path string, kinds engine.Kinds) (Info, error) {
	l, err := mlc.OpenLibrary(path)
	if err != nil {
		return Info{}, err
	}
	of := webllm.Describe(path, l)
	i := Info{Kind: "model-library", Quantization: l.Quantization,
		Model: record.Model{Name: filepath.Base(path), Format: "wasm", Architecture: l.ModelType,
			DType: l.Quantization, FileB: l.Bytes, Context: l.ContextWindowSize, Parameters: values(l.Params)},
		Library: &Library{Origin: of.String(), PrefillChunk: l.PrefillChunkSize,
			Sliding:     l.SlidingWindowSize,
			MemoryUsage: l.MemoryUsage}}
	if kv := l.KVCache; kv != nil {
		i.Layers, i.Heads, i.KVHeads, i.HeadDim = kv.Layers, kv.Heads, kv.KVHeads, kv.HeadDim
		i.KV = kvOf(2*int64(kv.Layers)*int64(kv.KVHeads)*int64(kv.HeadDim), l.ContextWindowSize)
	}
	own := abilityOf(webllm.CanLibrary(l))
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		if slices.Contains(k.Formats, models.WebLLM) {
			return own
		}
		return Ability{Cannot: k.Title + " only runs GGUF files"}
	})
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

func sum(sizes []int64) (n int64) {
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

// Print prints the description.
func (i Info) Print(w io.Writer) {
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(w, "%-14s %s\n", name, text)
		}
	}
	row("kind", "%s", map[string]string{"gguf": "GGUF", "webllm-package": "WebLLM package",
		"model-library": "model library for WebLLM", "hf-config": "Hugging Face configuration"}[i.Kind])
	row("name", "%s", i.Name)
	row("sha256", "%s", i.SHA256)
	row("damaged", "%s", i.Damaged)
	row("architecture", "%s", i.architecture())
	row("quantization", "%s", i.Quantization)
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
	if i.Parts > 0 {
		row("  parts", "%d files", i.Parts)
	}
	if i.BytesByComponent == nil {
		for _, dtype := range slices.Sorted(maps.Keys(i.BytesByType)) {
			row("  "+dtype, "%s", mib(i.BytesByType[dtype]))
		}
	}
	if p := i.Packaged; p != nil && i.Engines[webllm.Name].Cannot == "" {
		row("in WebLLM", "weights take %s with --dtype f32, %s with --dtype f16", mib(p.F32), mib(p.F16))
	}
	if i.Context > 0 {
		row("context", "%d tokens", i.Context)
	}
	if kv := i.KV; kv != nil && i.Engines[webllm.Name].Cannot != "" {
		row("KV cache", "f32: %d bytes per token; f16: %d bytes per token", kv.PerTokenF32, kv.PerTokenF16)
	} else if kv != nil {
		row("KV cache", "f32: %d bytes per token, WebLLM reserves %s; f16: %d bytes per token, WebLLM reserves %s",
			kv.PerTokenF32, mib(kv.ReservedF32), kv.PerTokenF16, mib(kv.ReservedF16))
	}
	if i.Tokenizer != "" || i.Kind == "hf-config" {
		row("tokenizer", "%s, %d tokens", cmp.Or(i.Tokenizer, "not read"), i.Vocab)
	}
	row("chat template", "%s", i.ChatTemplate)
	if l := i.Library; l != nil {
		row("library", "%s, %s, prefill in chunks of %d tokens", l.Origin, mib(i.FileB), l.PrefillChunk)
		for _, function := range slices.Sorted(maps.Keys(l.MemoryUsage)) {
			row("  "+function, "%d bytes of buffers", l.MemoryUsage[function])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Engines)) {
		a := i.Engines[name]
		switch {
		case a.Cannot != "":
			row(name, "cannot: %s", a.Cannot)
		case a.Unknown != "":
			row(name, "unknown: %s", a.Unknown)
		default:
			row(name, "%s", a.Can)
		}
	}
	for _, note := range i.Notes {
		row("note", "%s", note)
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
