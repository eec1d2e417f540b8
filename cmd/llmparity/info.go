package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/modellib"
	"llmparity/internal/record"
)

// modelInfo is what a GGUF says of itself, and what can be done with it here.
type modelInfo struct {
	record.Model
	// BytesByType is the weights' size by the type in which they are stored.
	BytesByType map[string]int64 `json:"bytes_by_type"`
	// KVBytesPerToken is what a token of context takes in a cache of float32; float16 takes half.
	KVBytesPerToken int64  `json:"kv_bytes_per_token_f32"`
	Tokenizer       string `json:"tokenizer"`
	// Engines says of each engine what keeps it from running the model here; empty: nothing.
	Engines map[string]string `json:"engines"`
}

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info MODEL.gguf",
		Short: "Say what a model is, what it takes, and which engines here can run it",
		Args:  arguments(cobra.ExactArgs(1)),
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

func describe(ctx context.Context, path string) (modelInfo, error) {
	m, err := openModel(path, 0)
	if err != nil {
		return modelInfo{}, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return modelInfo{}, err
	}
	defer f.Close()
	info := modelInfo{Model: m.Model, BytesByType: map[string]int64{}, Engines: map[string]string{},
		// Keys and values of every layer.
		KVBytesPerToken: 2 * 4 * int64(m.Layers) * int64(m.KVHeads) * int64(m.HeadDim)}
	for _, t := range f.Tensors {
		info.BytesByType[strings.ToLower(t.Type.String())] += t.Size
	}
	if v, err := f.Vocabulary(); err != nil {
		info.Tokenizer = err.Error()
	} else {
		info.Tokenizer = "byte-level BPE, " + v.Pre
		if v.Kind == gguf.SentencePiece {
			info.Tokenizer = "SentencePiece"
		}
	}
	for _, e := range (&engineFlags{adapter: "auto", threads: 1}).all() {
		info.Engines[e.Name()] = obstacle(ctx, e, m, f)
	}
	return info, nil
}

// obstacle is what keeps an engine from running a model here, in one line.
func obstacle(ctx context.Context, e engine.Engine, m engine.Model, f *gguf.File) string {
	err := e.Check(ctx, m)
	if _, packaged := e.(engine.Preparer); packaged && err == nil {
		err = packageable(f, m.Context)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// packageable tells whether a package and a library of the model can be made here.
func packageable(f *gguf.File, context int) error {
	if err := f.RequireReadable(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	var flags packageFlags
	shape, err := mlc.Shape(f, flags.options(context))
	if err != nil {
		return err
	}
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Ready(shape, flags.variant(browser.Target{Kernels: browser.SoftwareKernels}))
}

func (i modelInfo) print(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("name", "%s", i.Name)
	row("sha256", "%s", i.SHA256)
	row("architecture", "%s: %d layers, hidden size %d, %d heads, %d for keys and values, of %d", i.Architecture, i.Layers, i.Hidden, i.Heads, i.KVHeads, i.HeadDim)
	row("parameters", "%d", i.Parameters)
	row("weights", "%s in a file of %s", mib(i.WeightsB), mib(i.FileB))
	for _, name := range slices.Sorted(maps.Keys(i.BytesByType)) {
		row("  "+name, "%s", mib(i.BytesByType[name]))
	}
	row("in a browser", "%s: weights are float32 there", mib(4*i.Parameters))
	row("context", "%d tokens", i.Context)
	row("KV cache", "%d bytes a token in float32, %s for the whole context", i.KVBytesPerToken, mib(i.KVBytesPerToken*int64(i.Context)))
	row("tokenizer", "%s, %d tokens", i.Tokenizer, i.Vocab)
	for _, name := range slices.Sorted(maps.Keys(i.Engines)) {
		can := "can run it here"
		if why := i.Engines[name]; why != "" {
			can = "can't: " + why
		}
		row(name, "%s", can)
	}
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/record.MiB) }
