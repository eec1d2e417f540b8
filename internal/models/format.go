package models

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

// Format is a format of models: how it is recognised, and its reader.
type Format struct {
	Name  string // in records, and in the Formats of an engine's Kind
	Title string // for people
	Kind  string // in the description of a model
	Named string // what users name, for people: "a GGUF file"
	// Folder: a model is a folder. An unknown folder is read, and so refused, by the first such format.
	Folder bool
	// Exts end the names of its files, the first that of a model; the others are parts, which do not describe one.
	Exts []string
	// Reference: llmparity can compute with it itself, apply its chat template, and knows a context of any length.
	Reference bool
	// Fixed: a model was made for one dtype, in which engines compute.
	Fixed bool
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
	// toGGUF describes the GGUF of the same weights that it becomes; nil: it is one, or cannot become one.
	toGGUF func(path, name string) (*Converted, error)
	// Advice says where to get a GGUF of it, if it cannot become one here.
	Advice string
}

// Converted is a model of another format as the GGUF that it becomes.
type Converted struct {
	File   *gguf.File      // its description; the data is not there yet
	Same   record.Sameness // how its weights compare with the model's
	Intact func(context.Context) error
	Write  func(ctx context.Context, path string) error
	// plain is the dtype of the GGUF, and id names it in the cache.
	plain func(dtype string) string
	id    func(Model) (string, error)
}

// Names of formats, and the kind of description that a configuration has.
const (
	GGUF        = "gguf"
	WebLLM      = "webllm" // a package
	ONNX        = "onnx"
	HuggingFace = "hf"
	OfConfig    = "hf-config"
)

const (
	OfCatalogue = WebLLM // the format of the catalogue's models
	OfPackages  = WebLLM // the packages whose sizes Facts have, for a model of any format
)

// packageConfig is the file that makes a folder a package.
const packageConfig = "mlc-chat-config.json"

// formats are the formats of models, in the order in which they are recognised.
var formats []*Format

func init() { // their functions use the table
	formats = []*Format{
		{Name: WebLLM, Title: "WebLLM package", Kind: "webllm-package",
			Named: "the folder of a WebLLM package", Folder: true, Fixed: true,
			is: func(path string, info fs.FileInfo, _ string) bool {
				return info.IsDir() && isThere(filepath.Join(path, packageConfig))
			},
			open: func(_ context.Context, path, typed string, window int) (Model, error) {
				return OpenPackage(path, titled(typed), window)
			},
			hash: hashOfPackage, sizes: modelsize.FromPackage, Facts: packageFacts, weights: packageWeights,
			tokens: packageTokens, toGGUF: packageAsGGUF},
		{Name: GGUF, Title: "GGUF", Kind: "gguf", Named: "a GGUF file", Exts: []string{".gguf"}, Reference: true,
			is: func(path string, info fs.FileInfo, begin string) bool {
				return info.Mode().IsRegular() && (begin == "GGUF" || strings.EqualFold(filepath.Ext(path), ".gguf"))
			},
			open: open, hash: hashOf, sizes: ggufSizes, Facts: ggufFacts, weights: ggufWeights, tokens: tokenizer.Open},
		{Name: ONNX, Title: "ONNX model", Kind: "onnx", Named: "an ONNX file of a Hugging Face folder",
			Exts: []string{".onnx"}, is: isONNX, open: openONNX, hash: hashOfONNX, sizes: modelsize.FromONNX,
			Facts: onnxFacts, Advice: "get the GGUF of this model"},
		{Name: HuggingFace, Title: "Hugging Face folder", Kind: OfConfig,
			Named: "a Hugging Face folder (config.json)", Folder: true, Exts: []string{".json", ".safetensors"},
			is: func(path string, info fs.FileInfo, _ string) bool {
				return info.IsDir() && hfconfig.Exists(path) ||
					info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(path), ".json")
			},
			open: openFolder, hash: hashOfFolder, sizes: modelsize.FromHub, Facts: folderFacts, weights: folderWeights,
			tokens: folderTokens, toGGUF: folderAsGGUF},
	}
}

// Wanted lists what a user can name as a model, and more.
func Wanted(more ...string) string {
	all := append(phrases(func(*Format) bool { return true }), more...)
	last := len(all) - 1
	return "name " + strings.Join(all[:last], ", ") + " or " + all[last]
}

// phrases are what users name of formats, files first.
func phrases(of func(*Format) bool) (out []string) {
	for _, folder := range []bool{false, true} {
		for _, f := range formats {
			if f.Folder == folder && of(f) {
				out = append(out, f.Named)
			}
		}
	}
	return out
}

// filed returns the format whose files have a name's extension, and whether such a file is only a part; nil if none.
func filed(name string) (f *Format, part bool) {
	for _, f := range formats {
		at := slices.IndexFunc(f.Exts, func(ext string) bool { return strings.EqualFold(filepath.Ext(name), ext) })
		if at >= 0 {
			return f, at > 0
		}
	}
	return nil, false
}

// AsGGUF says how engines run a model of the format as a GGUF, or why it cannot become one. ok is false if no model of
// the format can.
func (f *Format) AsGGUF(path, name string) (can string, ok bool, err error) {
	if f.toGGUF == nil {
		return "", false, nil
	}
	g, err := f.toGGUF(path, name)
	if err != nil {
		return "", true, err
	}
	return fmt.Sprintf("runs it as a GGUF, %s, %s (llmparity run --model FOLDER)", g.File.Dominant(), g.Same), true, nil
}

// named returns the format of a name in records; without fields if it is none of files.
func named(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			return f
		}
	}
	return &Format{}
}

// Names lists, for people, what a user names of formats; without any, of a GGUF.
func Names(names []string) string {
	return strings.Join(phrases(func(f *Format) bool {
		return slices.Contains(names, f.Name) || len(names) == 0 && f.Name == GGUF
	}), " or ")
}

// Title returns the name of a format for people.
func Title(name string) string {
	return cmp.Or(named(name).Title, name)
}

// Reads reports whether weights and vocabulary of the model's format can be read.
func (m Model) Reads() bool { return named(m.Format).tokens != nil }

// Converts reports whether the model's format can become a GGUF.
func (m Model) Converts() bool { return named(m.Format).toGGUF != nil }

// Fixed reports whether a model was made for one dtype.
func (m Model) Fixed() bool { return named(m.Format).Fixed }

// Reference reports whether llmparity can compute with the model's format itself.
func (m Model) Reference() bool { return named(m.Format).Reference }

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
	at := slices.IndexFunc(formats, func(f *Format) bool { return f.Folder == isFolder(path) })
	return formats[at]
}

// Sizes reads the sizes of the model at a path.
func Sizes(path string) (modelsize.Model, error) {
	wanted := Wanted() + ", or give the sizes by flags"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return modelsize.Model{}, fault.Wrap(fault.BadModel, regular.Cause(err), wanted, "cannot read %s", path)
	case !info.IsDir() && !info.Mode().IsRegular():
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s is not a regular file", path)
	}
	f, err := Recognised(path)
	_, part := filed(path)
	switch {
	case err == nil && f != nil:
		return f.sizes(path)
	case info.IsDir():
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s contains no model", path)
	case part:
		return modelsize.Model{}, fault.New(fault.BadModel, wanted, "%s has weights, but not the model's sizes", path)
	}
	return assumed(path).sizes(path)
}

func ggufSizes(path string) (modelsize.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return modelsize.Model{}, err
	}
	defer f.Close()
	return modelsize.FromGGUF(f)
}

func packageTokens(path string) (*tokenizer.Tokenizer, error) {
	v, err := mlc.Tokenizer(path)
	if err != nil {
		return nil, err
	}
	return tokenizer.New(v), nil
}

func packageAsGGUF(path, name string) (*Converted, error) {
	g, err := mlc.AsGGUF(path, name)
	if err != nil {
		return nil, err
	}
	return &Converted{File: g.File, Same: g.Same, Intact: g.Intact, Write: g.Write, plain: mlc.Plain,
		id: packageID}, nil
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
