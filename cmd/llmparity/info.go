package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/kinds"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/record"
)

// modelInfo is what a model's file or folder says of itself, and what can be done with it here.
type modelInfo struct {
	Kind string `json:"kind"` // gguf, webllm-package, model-library
	record.Model
	Quantization string `json:"quantization,omitempty"` // MLC's name of how weights are stored, as in q0f32
	// BytesByType is the weights' size by the type in which they are stored, BytesByComponent by the part of the model
	// as well.
	BytesByType      map[string]int64            `json:"bytes_by_type,omitempty"`
	BytesByComponent map[string]map[string]int64 `json:"bytes_by_component,omitempty"`
	KV               *kvInfo                     `json:"kv_cache,omitempty"`
	Tokenizer        string                      `json:"tokenizer,omitempty"`
	ChatTemplate     string                      `json:"chat_template,omitempty"`
	Library          *libraryInfo                `json:"library,omitempty"`
	// Engines says of each engine what it can do with it here.
	Engines map[string]ability `json:"engines"`
}

// kvInfo is what a KV cache takes.
type kvInfo struct {
	PerTokenF32 int64 `json:"bytes_per_token_f32"`
	PerTokenF16 int64 `json:"bytes_per_token_f16"`
	// ReservedF32 and ReservedF16 are what WebLLM reserves at load for the whole context.
	ReservedF32 int64 `json:"webllm_reserved_bytes_f32"`
	ReservedF16 int64 `json:"webllm_reserved_bytes_f16"`
}

// libraryInfo is what a compiled model library says of itself beyond its model.
type libraryInfo struct {
	Origin       string           `json:"origin"`
	PrefillChunk int              `json:"prefill_chunk"`
	Sliding      int              `json:"sliding_window"`
	MemoryUsage  map[string]int64 `json:"memory_usage_bytes"` // of each function's own buffers
}

// ability is what an engine can do, or what keeps it from that.
type ability struct {
	Can    string `json:"can,omitempty"`
	Cannot string `json:"cannot,omitempty"`
}

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info MODEL",
		Short: "Say what a model is, what it takes, and what each engine here can do with it",
		Long: `Say what a model is, what it takes, and what each engine here can do with it. MODEL is a GGUF file, the folder of a WebLLM
package, or a compiled model library (.wasm), which is read without running it.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := describe(c.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(info)
			}
			info.print(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	return c
}

// describe goes by what is in the file, and by its name where that says nothing.
func describe(ctx context.Context, path string) (modelInfo, error) {
	const wanted = "a GGUF file, the folder of a WebLLM package (with mlc-chat-config.json) or a model library (.wasm) is expected"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return modelInfo{}, fault.Wrap(fault.BadModel, err, wanted, "the model can't be read")
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(path, "mlc-chat-config.json")); err != nil {
			return modelInfo{}, fault.New(fault.BadModel, wanted, "%s is a folder without a model", path)
		}
		return describePackage(path)
	case !info.Mode().IsRegular(): // opening a pipe would wait for somebody who writes into it
		return modelInfo{}, fault.New(fault.BadModel, wanted, "%s is no regular file", path)
	}
	switch begin, err := beginning(path); {
	case err != nil:
		return modelInfo{}, fault.Wrap(fault.BadModel, err, wanted, "the model can't be read")
	case begin == "GGUF" || strings.EqualFold(filepath.Ext(path), ".gguf"):
		return describeGGUF(ctx, path)
	case begin == "\x00asm" || strings.EqualFold(filepath.Ext(path), ".wasm"):
		return describeLibrary(path)
	}
	return modelInfo{}, fault.New(fault.BadModel, wanted, "%s is no model", path)
}

func beginning(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 4)
	n, err := io.ReadFull(f, b)
	if n > 0 || err == io.EOF { // a short file says what it can
		return string(b[:n]), nil
	}
	return "", err
}

func describeGGUF(ctx context.Context, path string) (modelInfo, error) {
	m, err := model.Open(path, 0)
	if err == nil {
		err = m.Unsupported
	}
	if err != nil {
		return modelInfo{}, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return modelInfo{}, err
	}
	defer f.Close()
	i := modelInfo{Kind: "gguf", Model: m.Model, ChatTemplate: "none"}
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
			i.ChatTemplate = "one that is not known; a package gets " + name
		}
	}
	i.Engines = ggufAbilities(ctx, m)
	return i, nil
}

// ggufAbilities says what each engine can do with a GGUF here. None is started.
func ggufAbilities(ctx context.Context, m engine.Model) map[string]ability {
	out, choice := map[string]ability{}, new(engineFlags).chosen()
	for _, k := range kinds.All {
		if k.Runs == nil {
			continue
		}
		err := k.Accepts(ctx, choice.Engine(k.Name), m).Err()
		if err == nil && k.Makes != nil {
			err = k.Makes(m)
		}
		if err != nil {
			out[k.Name] = ability{Cannot: err.Error()}
		} else {
			out[k.Name] = ability{Can: k.Runs(m.DType)}
		}
	}
	return out
}

// abilities say what engines can do with what is no GGUF: the one that it is for, as it says, others nothing.
func abilities(can string, err error) map[string]ability {
	out := map[string]ability{}
	for _, k := range kinds.All {
		switch {
		case k.Runs == nil:
		case !slices.Contains(k.Formats, model.WebLLM):
			out[k.Name] = ability{Cannot: k.Title + " reads GGUF files alone"}
		case err != nil:
			out[k.Name] = ability{Cannot: err.Error()}
		default:
			out[k.Name] = ability{Can: can}
		}
	}
	return out
}

func describePackage(dir string) (modelInfo, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return modelInfo{}, err
	}
	i := modelInfo{Kind: "webllm-package", Quantization: p.Quantization, ChatTemplate: cmp.Or(p.ChatTemplate, "none"),
		Model: record.Model{
			Name: filepath.Base(filepath.Clean(dir)), Format: model.WebLLM, Architecture: p.ModelType,
			DType:    p.Quantization,
			WeightsB: p.Bytes, FileB: p.Bytes, Layers: p.Layers, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim,
			Hidden: p.Hidden, Vocab: p.Vocab, Context: p.ContextWindowSize}}
	var params []mlc.Param
	for _, w := range p.Weights {
		i.weight(w.Name, w.DType, w.Bytes)
		params = append(params, w.Param)
	}
	i.Parameters = values(params)
	i.KV = kvOf(2*int64(p.Layers)*int64(p.KVHeads)*int64(p.HeadDim), p.ContextWindowSize)
	i.Tokenizer = strings.Join(p.TokenizerFiles, ", ")
	i.Engines = abilities(webllm.CanPackage(p, params))
	return i, nil
}

func describeLibrary(path string) (modelInfo, error) {
	l, err := mlc.OpenLibrary(path)
	if err != nil {
		return modelInfo{}, err
	}
	origin, detail, _ := webllm.OriginOf(path, l)
	i := modelInfo{Kind: "model-library", Quantization: l.Quantization,
		Model: record.Model{Name: filepath.Base(path), Format: "wasm", Architecture: l.ModelType,
			DType: l.Quantization, FileB: l.Bytes, Context: l.ContextWindowSize, Parameters: values(l.Params)},
		Library: &libraryInfo{Origin: origin + " (" + detail + ")", PrefillChunk: l.PrefillChunkSize,
			Sliding:     l.SlidingWindowSize,
			MemoryUsage: l.MemoryUsage}}
	perToken := mlc.KVValues(l.Params)
	if kv := l.KVCache; kv != nil {
		i.Layers, i.Heads, i.KVHeads, i.HeadDim = kv.Layers, kv.Heads, kv.KVHeads, kv.HeadDim
		perToken = 2 * int64(kv.Layers) * int64(kv.KVHeads) * int64(kv.HeadDim)
	}
	i.KV = kvOf(perToken, l.ContextWindowSize)
	i.Engines = abilities(webllm.CanLibrary(l))
	return i, nil
}

// weight adds one to the sums.
func (i *modelInfo) weight(name, dtype string, bytes int64) {
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

// values counts a model's parameters; 0 where weights are packed, so that their shapes don't tell, or a size is left
// open.
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

func kvOf(valuesPerToken int64, context int) *kvInfo {
	if valuesPerToken <= 0 || context <= 0 {
		return nil
	}
	kv := &kvInfo{PerTokenF32: 4 * valuesPerToken, PerTokenF16: 2 * valuesPerToken}
	kv.ReservedF32, kv.ReservedF16 = mlc.KVReserved(kv.PerTokenF32, context), mlc.KVReserved(kv.PerTokenF16, context)
	return kv
}

func (i modelInfo) print(w io.Writer) {
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
		row("weights", "%s in files of %s", mib(i.WeightsB), mib(i.FileB))
	}
	for _, part := range slices.Sorted(maps.Keys(i.BytesByComponent)) {
		var words []string
		for _, dtype := range slices.Sorted(maps.Keys(i.BytesByComponent[part])) {
			words = append(words, mib(i.BytesByComponent[part][dtype])+" "+dtype)
		}
		row("  "+part, "%s", strings.Join(words, ", "))
	}
	if i.Kind == "gguf" {
		row("in a browser", "%s of weights as f32, %s as f16", mib(4*i.Parameters), mib(2*i.Parameters))
	}
	row("context", "%d tokens", i.Context)
	if kv := i.KV; kv != nil {
		row("KV cache", "f32: %d bytes a token, of which WebLLM reserves %s for the whole context; f16: %d and %s",
			kv.PerTokenF32, mib(kv.ReservedF32), kv.PerTokenF16, mib(kv.ReservedF16))
	}
	if i.Tokenizer != "" {
		row("tokenizer", "%s, %d tokens", i.Tokenizer, i.Vocab)
	}
	if i.ChatTemplate != "" {
		row("chat template", "%s", i.ChatTemplate)
	}
	if l := i.Library; l != nil {
		row("library", "%s, %s, prompts in pieces of %d tokens", l.Origin, mib(i.FileB), l.PrefillChunk)
		for _, function := range slices.Sorted(maps.Keys(l.MemoryUsage)) {
			row("  "+function, "%d bytes of its own", l.MemoryUsage[function])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Engines)) {
		a := i.Engines[name]
		if a.Cannot != "" {
			row(name, "can't: %s", a.Cannot)
			continue
		}
		row(name, "%s", a.Can)
	}
}

func (i modelInfo) architecture() string {
	if i.Layers == 0 {
		return i.Architecture
	}
	words := fmt.Sprintf("%s: %d layers", i.Architecture, i.Layers)
	if i.Hidden > 0 {
		words += fmt.Sprintf(", hidden size %d", i.Hidden)
	}
	return words + fmt.Sprintf(", %d heads, %d for keys and values, of %d", i.Heads, i.KVHeads, i.HeadDim)
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/record.MiB) }
