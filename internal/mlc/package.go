// Package mlc writes a WebLLM model package from a llama or qwen2 GGUF: the same weights, tokenizer and settings, laid
// out as WebLLM 0.2.86 looks them up. Together with a model library (which holds the code, and isn't made here) that is
// a model that runs in a browser and in a native engine alike.
//
// Weights of every type that can be read become float32 or float16; it quantises nothing. Tokenizers are those that
// gguf reads. It knows the usual chat templates; another one is a warning of the Package, because raw prompts still
// work. A tensor that is larger than a shard gets a larger shard of its own: records can't be split. Of the weights a
// few MiB a core are in memory at a time.
package mlc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
	"llmparity/internal/whole"
)

// Options are what a package fixes beyond its model.
type Options struct {
	ContextWindow int    // in tokens; 0 means the model's own
	PrefillChunk  int    // tokens that are prefilled at once; 0 means 128, or the context window where that is smaller
	DType         string // of the weights: Float32, which "" means too, or Float16
	Library       string // a compiled model library's file, to be copied into the package as LibraryName; "" for none
	SHA256        string // of the GGUF, where it must be one that was seen before; "" for whichever lies there
}

const defaultChunk = 128

// Package says what was written.
type Package struct {
	Dir        string
	Shape      modellib.Shape
	Parameters int64    // weights
	Bytes      int64    // of weights
	Files      []string // names within Dir
	Warnings   []string // what the package can't do that the GGUF can, and where engines that follow it differ
}

// configName is the file by which a package is known as one; it is written last.
const (
	configName    = "mlc-chat-config.json"
	tokenizerName = "tokenizer.json"
)

// LibraryName is what a package's model library is called, where it has one.
const LibraryName = "lib.wasm"

// Write makes a package in the folder dir from the GGUF at path. The folder appears when all is done; an older package
// in its place is replaced, any other folder that isn't empty is left alone, which is an error. Of several that write
// the same folder at once, each finds it whole, and the last one's package stays.
func Write(ctx context.Context, path, dir string, options Options) (Package, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	m, err := newModel(f, options)
	if err != nil {
		return Package{}, err
	}
	if err := replaceable(dir); err != nil {
		return Package{}, err
	}
	aside, err := whole.NewFolder(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return Package{}, unwritable(err, dir)
	}
	defer aside.Remove()
	if err := sameModel(ctx, f, options.SHA256); err != nil {
		return Package{}, err
	}
	p, err := m.write(ctx, aside.Path)
	if err != nil {
		return Package{}, unwritable(err, dir)
	}
	if err := publish(aside.Path, dir); err != nil {
		return Package{}, unwritable(err, dir)
	}
	p.Dir = dir
	return p, nil
}

// model is all that is known before the first weight is read.
type model struct {
	file         *gguf.File
	architecture gguf.Architecture
	vocabulary   gguf.Vocabulary
	shape        modellib.Shape
	dtype        dtype
	library      string
}

func newModel(f *gguf.File, options Options) (m model, err error) {
	m.file, m.library = f, options.Library
	if m.architecture, err = f.Architecture(); err != nil {
		return m, err
	}
	if m.shape, err = shape(f.Name, m.architecture, options); err != nil {
		return m, err
	}
	if m.dtype, err = dtypeOf(options.DType); err != nil {
		return m, err
	}
	if m.vocabulary, err = f.Vocabulary(); err != nil {
		return m, err
	}
	return m, f.RequireReadable()
}

// errReplaced is why a model that is another one by now is not converted.
var errReplaced = errors.New("it is another file than it was when this began")

// sameModel tells whether a model still has a sum, read through the descriptor that its weights are then read through.
func sameModel(ctx context.Context, f *gguf.File, want string) error {
	if want == "" {
		return nil
	}
	sum, err := f.SHA256(ctx)
	if err == nil && sum != want {
		err = fault.Wrap(fault.BadModel, errReplaced, "let it be while a run goes on, and try again",
			"model %s was replaced", f.Name)
	}
	return err
}

// write writes the package's files into dir.
func (m model) write(ctx context.Context, dir string) (Package, error) {
	p := Package{Shape: m.shape, Warnings: Warnings(m.shape)}
	tokenized := make(chan error, 1) // beside the weights: a large vocabulary takes a while too
	go func() { tokenized <- writeJSON(filepath.Join(dir, tokenizerName), tokenizerOf(m.vocabulary)) }()
	cache, err := writeShards(ctx, m.file, m.architecture, m.dtype, dir)
	if e := <-tokenized; err == nil {
		err = e
	}
	if err != nil {
		return p, err
	}
	for _, shard := range cache.Records {
		p.Files = append(p.Files, shard.File)
	}
	p.Parameters, p.Bytes = cache.Metadata.ParamSize, cache.Metadata.ParamBytes
	if m.library != "" {
		if err := copyFile(m.library, filepath.Join(dir, LibraryName)); err != nil {
			return p, err
		}
	}
	config, knownTemplate := chatConfig(m.shape, m.dtype.quantization, m.vocabulary)
	if !knownTemplate {
		p.Warnings = append(p.Warnings,
			"the model's chat template is none that is known: use raw prompts, chats would be laid out differently")
	}
	for _, file := range []struct {
		name    string
		content any
	}{{"tensor-cache.json", cache}, {configName, config}} {
		if err := writeJSON(filepath.Join(dir, file.name), file.content); err != nil {
			return p, err
		}
	}
	p.Files = append(p.Files, "tensor-cache.json", tokenizerName, configName)
	if m.library != "" {
		p.Files = append(p.Files, LibraryName)
	}
	return p, os.Chmod(dir, 0o755)
}

// Warnings tells of what a model says and llama.cpp doesn't do; a Package has them too.
func Warnings(s modellib.Shape) []string {
	n := s.SlidingWindowSize
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("each token of the model sees %d tokens (%s.attention.sliding_window), which llama.cpp doesn't "+
		"keep to: in longer texts it gives other tokens; with a context of %d engines agree", n, s.ModelType, n)}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return fault.Wrap(fault.Unwritable, err, "compile it again", "cannot read the model library %s", from)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func writeJSON(path string, content any) error {
	b, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// replaceable says whether dir may be put aside for a package: it isn't there, is empty, or is a package.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(err, dir)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, configName)); err != nil {
		return fault.New(fault.Unwritable, "choose another folder", "%s is not empty and holds no model package", dir)
	}
	return nil
}

// unwritable makes an error of the file system one that the user can act on.
func unwritable(err error, dir string) error {
	return fault.WriteError(err, dir, "choose another folder")
}
