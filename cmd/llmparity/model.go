package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
)

// prefillChunk is how many prompt tokens the WebLLM library takes at a time, where the context has room for as many.
const prefillChunk = 128

func modelCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Make, list and inspect models",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(), tinyCommand(), randomCommand(), convertCommand(), infoCommand())
	return c
}

func tinyCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "tiny",
		Short: "Write the tiny model: a GGUF, and a WebLLM package of the same weights",
		Long: `Write the tiny model, the same bytes on every machine: tiny.gguf, and the folder webllm with the same weights as a
WebLLM package. Its compiled library, webllm/lib.wasm, needs Python and emscripten once (` + "`make setup`" + `).`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return writeTiny(c.Context(), out, func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }, c.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&out, "output", "o", ".", "the folder to write into")
	return c
}

func writeTiny(ctx context.Context, out string, say func(string), w io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return writeFault(err, out)
	}
	path := filepath.Join(out, "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s  %s\n", path, tiny.SHA256)
	return writePackage(ctx, path, filepath.Join(out, "webllm"), 0, engineFlags{}, say, w)
}

// writePackage writes a model's WebLLM package, and its library as lib.wasm in the same folder. A context of 0 is the
// model's own.
func writePackage(ctx context.Context, path, target string, context int, flags engineFlags, say func(string),
	w io.Writer) error {
	m, err := openModel(path, context)
	if err != nil {
		return err
	}
	f, err := openReadable(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// A folder that can't be written to is told before anything is compiled for it.
	if err := writable(target); err != nil {
		return err
	}
	// A package may be made for another machine, so float16 needs no adapter here; what kernels it gets does, unless it
	// is said.
	made, options := flags, flags.options(m.Context)
	made.dtype = browser.F32
	t, err := made.newWebLLM().Target(ctx, say)
	if err != nil {
		return err
	}
	// The library first: where its compiler is missing, no package is written in vain.
	lib, err := compile(ctx, cache.Dir(os.Getenv), f, options, flags.variant(t), say)
	if err != nil {
		return err
	}
	options.Library, options.SHA256 = lib.Path, m.SHA256
	written, err := mlc.Write(ctx, path, target, options)
	if err != nil {
		return err
	}
	for _, w := range written.Warnings {
		say(w)
	}
	fmt.Fprintf(w, "%s/\n%s\n", target, filepath.Join(target, mlc.LibraryName))
	return nil
}

// writable says why a package can't be made at target.
func writable(target string) error {
	if info, err := os.Stat(target); err == nil && !info.IsDir() {
		return writeFault(errors.New("it is there and no folder"), target)
	}
	parent := filepath.Dir(target)
	err := os.MkdirAll(parent, 0o755)
	if err == nil {
		var probe string
		if probe, err = os.MkdirTemp(parent, ".probe-*"); err == nil {
			err = os.Remove(probe)
		}
	}
	if err != nil {
		return writeFault(err, target)
	}
	return nil
}

// findModel gives the model that a plan names.
func (f *runFlags) findModel(ctx context.Context, name string, context int, say func(string)) (engine.Model, error) {
	if f.mirror != "" && (name == "tiny" || name == "smollm2" || !isID(name)) {
		return engine.Model{}, notMirrored(name)
	}
	if name == servedPrefix {
		return engine.Model{}, fault.New(fault.Usage, "name it as the server does: served:NAME",
			"the model %s has no name", servedPrefix)
	}
	if m, ok := servedModel(name, context); ok {
		return m, nil
	}
	switch {
	case name == "tiny":
		return tinyModel(context)
	case name == "smollm2":
		path, err := smolLM2Path()
		if err != nil {
			return engine.Model{}, err
		}
		return openModel(path, context)
	case isPackage(name):
		return openPackaged(name, filepath.Base(filepath.Clean(name)), context)
	case isID(name):
		return f.catalogued(ctx, name, context, say)
	}
	return openModel(name, context)
}

// notMirrored refuses a mirror for what none has.
func notMirrored(name string) error {
	return fault.New(fault.Usage, "leave it out",
		"--mirror says where a model of WebLLM's catalogue is fetched from, and %s is none", name)
}

// isID tells an id of the catalogue, which may have dots in it, from a file that isn't there.
func isID(name string) bool {
	if strings.ContainsAny(name, `/\`) || strings.EqualFold(filepath.Ext(name), ".gguf") {
		return false
	}
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// tinyModel is the tiny model, made when it isn't there yet.
func tinyModel(context int) (engine.Model, error) {
	path := filepath.Join(cache.Dir(os.Getenv), "models", tiny.SHA256[:12], "tiny.gguf")
	if _, err := os.Stat(path); err != nil {
		if err := cache.MkdirAll(filepath.Dir(path)); err != nil {
			return engine.Model{}, err
		}
		if err := tiny.WriteFile(path); err != nil {
			return engine.Model{}, err
		}
	}
	return openModel(path, context)
}

// f32 is the type of weights that every engine computes on as they are.
const f32 = "f32"

// openModel reads what a GGUF says of itself. A context of 0 is the longest that the model was made for.
func openModel(path string, context int) (engine.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return engine.Model{}, err
	}
	defer f.Close()
	arch, err := f.Architecture()
	if err != nil {
		return engine.Model{}, err
	}
	if context == 0 {
		context = arch.ContextLength
	}
	if context > arch.ContextLength {
		return engine.Model{}, fault.New(fault.Usage, "",
			"context: %d, the model %s was made for at most %d", context, path, arch.ContextLength)
	}
	file, err := os.Stat(path) // before it is read: what takes its place later is another one
	if err != nil {
		return engine.Model{}, err
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return engine.Model{}, err
	}
	name, err := f.Text("general.name")
	if err != nil {
		name = filepath.Base(path)
	}
	m := engine.Model{Path: path, File: file, Model: record.Model{
		Name: name, SHA256: sum, Format: "gguf", Architecture: arch.Name,
		DType: strings.ToLower(f.Dominant().String()), FileB: f.Size, Context: context, MaxContext: arch.ContextLength,
		Layers: arch.BlockCount, Heads: arch.HeadCount, KVHeads: arch.HeadCountKV, HeadDim: arch.HeadDim,
		Hidden: arch.EmbeddingLength, Vocab: arch.VocabSize,
	}}
	for _, t := range f.Tensors {
		m.Parameters += t.Elements()
		m.WeightsB += t.Size
	}
	return m, nil
}
