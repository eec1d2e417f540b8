package models

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/models/tokenizer"
)

// Format is a format of models: how it is recognised, and its reader.
type Format struct {
	Name  string // in records, and in the Formats of an engine's Kind
	Title string // for people
	Kind  string // in the description of a model
	// is recognises a file or folder. begin has up to four bytes of a file.
	is func(path string, info fs.FileInfo, begin string) bool
	// open describes a model for engines. typed is its name as a user typed it.
	open func(ctx context.Context, path, typed string, window int) (Model, error)
	// hash returns the hash that runs record, sizes what predictions need, and Facts what a user wants to know.
	hash  func(ctx context.Context, path string) (string, error)
	sizes func(path string) (modelsize.Model, error)
	Facts func(ctx context.Context, path string) (Facts, error)
	// tokens reads the vocabulary, and weights the weights as those of a GGUF; nil: they cannot be read.
	tokens  func(path string) (*tokenizer.Tokenizer, error)
	weights func(ctx context.Context, m Model) (tensors []gguf.Weights, done func(), err error)
	// AsGGUF says how engines run it as a GGUF, which it is converted to; nil: it is one, or cannot become one.
	AsGGUF func(path, name string) (string, error)
	// Advice says where to get a GGUF of it, if no engine runs it.
	Advice string
}

// Names of formats, and the kind of description that a configuration has.
const (
	GGUF        = "gguf"
	WebLLM      = "webllm" // a package
	HuggingFace = "hf"
	OfConfig    = "hf-config"
)

// packageConfig is the file that makes a folder a package.
const packageConfig = "mlc-chat-config.json"

// formats are the formats of models, in the order in which they are recognised.
var formats []*Format

func init() { // their functions use the table
	formats = []*Format{
		{Name: WebLLM, Title: "WebLLM package", Kind: "webllm-package",
			is: func(path string, info fs.FileInfo, _ string) bool {
				return info.IsDir() && isThere(filepath.Join(path, packageConfig))
			},
			open: func(_ context.Context, path, typed string, window int) (Model, error) {
				return OpenPackage(path, titled(typed), window)
			},
			hash: hashOfPackage, sizes: modelsize.FromPackage, Facts: packageFacts, weights: packageWeights,
			tokens: func(path string) (*tokenizer.Tokenizer, error) {
				v, err := mlc.Tokenizer(path)
				if err != nil {
					return nil, err
				}
				return tokenizer.New(v), nil
			},
			AsGGUF: func(path, name string) (string, error) {
				g, err := mlc.AsGGUF(path, name)
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("runs it as a GGUF, %s, %s (llmparity run --model FOLDER)", g.File.Dominant(), g.Same), nil
			}},
		{Name: HuggingFace, Title: "Hugging Face configuration", Kind: OfConfig,
			is: func(path string, info fs.FileInfo, _ string) bool {
				return info.IsDir() && hfconfig.Exists(path) ||
					info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(path), ".json")
			},
			open: func(_ context.Context, path, _ string, _ int) (Model, error) {
				return Model{}, fault.New(fault.BadModel, "convert it with llama.cpp's convert_hf_to_gguf.py, or get a GGUF",
					"%s has the model as safetensors or PyTorch files, which no engine here runs", path)
			},
			hash:   func(_ context.Context, path string) (string, error) { return cache.HashFile(path) },
			sizes:  modelsize.FromHub,
			Facts:  configFacts,
			Advice: "llama.cpp's convert_hf_to_gguf.py makes one"},
		{Name: GGUF, Title: "GGUF", Kind: "gguf",
			is: func(path string, info fs.FileInfo, begin string) bool {
				return info.Mode().IsRegular() && (begin == "GGUF" || strings.EqualFold(filepath.Ext(path), ".gguf"))
			},
			open: open, hash: hashOf, sizes: ggufSizes, Facts: ggufFacts, weights: ggufWeights, tokens: tokenizer.Open},
	}
}

// named returns the format of a name in records; nil if it is none of files.
func named(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Title returns the name of a format for people.
func Title(name string) string {
	if f := named(name); f != nil {
		return f.Title
	}
	return name
}

// Reads reports whether weights and vocabulary of the model's format can be read.
func (m Model) Reads() bool {
	f := named(m.Format)
	return f != nil && f.tokens != nil
}

// Converts reports whether the model's format can become a GGUF.
func (m Model) Converts() bool {
	f := named(m.Format)
	return f != nil && f.AsGGUF != nil
}

// Recognised returns the format of a file or folder; nil if it is none.
func Recognised(path string) (*Format, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	begin := ""
	if info.Mode().IsRegular() { // opening a pipe would wait for a writer
		if begin, err = beginning(path); err != nil {
			return nil, err
		}
	}
	for _, f := range formats {
		if f.is(path, info, begin) {
			return f, nil
		}
	}
	return nil, nil
}

// IsLibrary reports whether a file is a compiled model library, by its content or name.
func IsLibrary(path string) bool {
	begin, err := beginning(path)
	return err == nil && (begin == "\x00asm" || strings.EqualFold(filepath.Ext(path), ".wasm"))
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

// assumed returns the format of a file or folder, or what is assumed of an unknown one: its reader says what is wrong.
func assumed(path string) *Format {
	if f, err := Recognised(path); err == nil && f != nil {
		return f
	}
	if IsPackage(path) {
		return named(WebLLM)
	}
	return named(GGUF)
}

// Sizes reads the sizes of the model at a path.
func Sizes(path string) (modelsize.Model, error) {
	const wanted = "name a GGUF file, the folder of a WebLLM package, or a config.json or its folder; or give the sizes by flags"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return modelsize.Model{}, fault.Wrap(fault.BadModel, regular.Cause(err), wanted, "cannot read %s", path)
	case !info.IsDir() && !info.Mode().IsRegular():
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s is not a regular file", path)
	case strings.EqualFold(filepath.Ext(path), ".safetensors") && !info.IsDir():
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s has weights, but not the model's sizes", path)
	}
	switch f, err := Recognised(path); {
	case err == nil && f != nil:
		return f.sizes(path)
	case info.IsDir():
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s contains no model", path)
	}
	return ggufSizes(path)
}

func ggufSizes(path string) (modelsize.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return modelsize.Model{}, err
	}
	defer f.Close()
	return modelsize.FromGGUF(f)
}

func packageWeights(ctx context.Context, m Model) (tensors []gguf.Weights, done func(), err error) {
	g, err := mlc.AsGGUF(m.Path, m.Name)
	if err == nil {
		err = g.Intact(ctx) // the list of the shards stands for them in the cache
	}
	if err != nil {
		return nil, nil, err
	}
	return g.Tensors(), func() {}, nil
}

func ggufWeights(_ context.Context, m Model) (tensors []gguf.Weights, done func(), err error) {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return nil, nil, err
	}
	return f.Unquantised(), func() { f.Close() }, nil
}

func hashOfPackage(_ context.Context, dir string) (string, error) {
	m, err := OpenPackage(dir, dir, 0)
	return m.SHA256, err
}
