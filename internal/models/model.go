// Package models finds the model that a plan or a command names, and reads its description.
//
// A name is tiny, a quantised form of it such as tiny-q4_0, smollm2, a GGUF file, the folder of a WebLLM package, an id
// of WebLLM's catalogue, hf:ORG/NAME or ollama:NAME for a model that another tool has downloaded, or served:NAME for a
// model on a server. Whether an engine runs the model is up to the engine.
package models

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// Names other than files.
const (
	Tiny    = "tiny"
	SmolLM2 = "smollm2"
	Served  = "served:" // prefix of models on a server
)

// Finder finds models.
type Finder struct {
	Catalogue func() (catalogue.Catalogue, error)
	Mirror    string // source of catalogue models; "": the public URLs
	// Features returns the features of the WebGPU adapter. Called only if a model needs one.
	Features func(context.Context) ([]string, error)
	Say      func(string)
}

// Find returns a model by name, with a context window in tokens; 0 is the model's own. A model of the catalogue is
// downloaded unless it is in the store.
func (f Finder) Find(ctx context.Context, name string, window int) (Model, error) {
	rest, served := strings.CutPrefix(name, Served)
	switch {
	case f.Mirror != "" && !isFolder(f.Mirror) && !Listed(name) && !served: // a folder may have model libraries
		return Model{}, NotMirrored(name)
	case served && rest == "":
		return Model{}, fault.New(fault.Usage, "write served:NAME, with the server's name for the model",
			"model %s has no name", name)
	case served:
		return Model{Model: record.Model{Name: rest, Format: record.Served, Context: window}}, nil
	case Listed(name):
		return f.catalogued(ctx, name, window)
	}
	path, err := Path(name)
	if err != nil {
		return Model{}, err
	}
	return assumed(path).open(ctx, path, name, window)
}

// Listed reports whether a name is an id of the catalogue rather than an existing file. Ids may contain dots.
func Listed(name string) bool { return !strings.ContainsAny(name, `/\`) && !Spelled(name) }

// Spelled reports whether a name is a file or folder, or names its source.
func Spelled(name string) bool {
	_, err := os.Lstat(name)
	return err == nil || builtIn(name) != nil || name == SmolLM2 || IsFile(name) ||
		slices.ContainsFunc([]string{Served, hub, ollama}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// IsFile reports whether a name has the extension of a model's files.
func IsFile(name string) bool {
	f, _ := filed(name)
	return f != nil
}

// NotMirrored refuses --mirror for a model that is not in the catalogue.
func NotMirrored(name string) error {
	return fault.New(fault.Usage, "omit it",
		"--mirror is for models of WebLLM's catalogue; %s is not in it", name)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Stored returns the folder of a model of the catalogue that is in the store.
func Stored(id string) (dir string, ok bool) {
	p, err := catalogue.Open(store(), id)
	return p.Dir, err == nil
}

// Convertible describes the GGUF that a model becomes, which is a file or folder here or in the catalogue's store. g is
// nil if the model is a GGUF.
func Convertible(name string) (g *Converted, title string, err error) {
	path, title := name, titled(name)
	if dir, stored := Stored(name); Listed(name) && stored {
		path, title = dir, name
	} else if Listed(name) {
		return nil, title, nil
	} else if found, is, err := Local(name); is && err == nil {
		path = found
	}
	switch f := assumed(path); {
	case f.toGGUF != nil:
		g, err = f.toGGUF(path, title)
	case f.weights == nil:
		err = fault.New(fault.BadModel, f.Advice, "%s is a %s, which cannot be converted here", name, f.Title)
	}
	return g, title, err
}

// titled is the title of a package that a path or a name of Hugging Face's cache names.
func titled(name string) string { return filepath.Base(filepath.Clean(strings.TrimPrefix(name, hub))) }

// Path returns the file or folder of a name other than models of the catalogue and of servers. It writes the tiny model
// if it is missing.
func Path(name string) (string, error) {
	if path, ok, err := Local(name); ok {
		return path, err
	}
	if write := builtIn(name); write != nil {
		path := filepath.Join(cache.Dir(os.Getenv), "models", tiny.SHA256[:12], name+".gguf")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if err := cache.MkdirAll(filepath.Dir(path)); err != nil {
			return "", err
		}
		return path, write(path)
	}
	if name == SmolLM2 { // where scripts/setup puts it
		dir := filepath.Join(cache.Dir(os.Getenv), "models", "smollm2")
		found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		if err != nil || len(found) != 1 {
			return "", fault.New(fault.BadModel, "run scripts/setup smollm2", "model smollm2 is not in %s", dir)
		}
		return found[0], nil
	}
	return name, nil
}

// builtIn returns what writes a built-in model; nil: it is none.
func builtIn(name string) func(path string) error {
	if name == Tiny {
		return tiny.WriteFile
	}
	for _, f := range tiny.Forms() {
		if name == Tiny+"-"+f.Type.DType().Name {
			return f.WriteFile
		}
	}
	return nil
}

// Tinies are the names of the built-in model and of its quantised forms.
func Tinies() []string {
	out := []string{Tiny}
	for _, f := range tiny.Forms() {
		out = append(out, Tiny+"-"+f.Type.DType().Name)
	}
	return out
}

// Open reads the description of a GGUF, which may be split. A context of 0 is the model's maximum. A model that
// llmparity cannot compute with is described as far as it can be read.
func Open(ctx context.Context, path string, window int) (Model, error) {
	return open(ctx, path, path, window)
}

// open calls the model as it was typed in errors that are not about its file.
func open(ctx context.Context, path, typed string, window int) (Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	if err := f.Whole(); err != nil {
		return Model{}, err
	}
	unsupported, unreadable := computable(f)
	of, err := modelsize.FromGGUF(f)
	if err != nil {
		return Model{}, cmp.Or(unsupported, err)
	}
	if of.MaxContext > 0 && window > of.MaxContext {
		return Model{}, fault.New(fault.Usage, "use a smaller context",
			"context %d exceeds the maximum of %d of model %s (context_length in the GGUF)", window, of.MaxContext, typed)
	}
	m := Model{Path: f.Paths()[0], Unsupported: unsupported, Unreadable: unreadable}
	_, m.Template = f.Lookup("tokenizer.chat_template")
	if len(f.Paths()) > 1 {
		m.Parts = f.Paths()
	}
	for _, part := range m.Files() { // before reading, to notice a later replacement
		file, err := os.Stat(part)
		if err != nil {
			return Model{}, err
		}
		m.Was = append(m.Was, file)
	}
	sum, err := f.SHA256(ctx)
	if err != nil {
		return Model{}, err
	}
	name, err := f.Text("general.name")
	if err != nil || name == "" {
		name = filepath.Base(path)
	}
	m.Model = record.Model{
		Name: name, Title: titleOf(f, path), SHA256: sum, Format: GGUF, Architecture: of.Type,
		DType: f.DType(), FileB: f.Size, Context: cmp.Or(window, of.MaxContext), MaxContext: of.MaxContext,
		Parameters: of.Parameters, Layers: of.Layers, Heads: of.Heads, KVHeads: of.KVHeads, HeadDim: of.HeadDim,
		Hidden: of.Hidden, Vocab: of.Vocab,
	}
	for _, t := range f.Tensors {
		m.WeightsB += t.Size
	}
	m.MadeFrom, err = f.MadeFrom()
	return m, err
}

// computable returns why llmparity cannot compute with a GGUF, and why it cannot read its weights. If it does not even
// know their type, perhaps nobody does.
func computable(f *gguf.File) (unsupported, unreadable error) {
	unreadable = f.RequireReadable()
	if slices.ContainsFunc(f.Tensors, func(t gguf.Tensor) bool { return !t.Type.Known() }) {
		unsupported = unreadable
	}
	_, vocabulary := f.Vocabulary()
	_, architecture := f.Architecture()
	return cmp.Or(architecture, vocabulary, unsupported), unreadable
}

// OpenPackage reads the description of a package. A context of 0 is the package's own.
func OpenPackage(dir, name string, window int) (Model, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return Model{}, err
	}
	longest := p.Longest()
	window = cmp.Or(window, longest)
	if longest > 0 && window > longest {
		return Model{}, fault.New(fault.Usage, "use a smaller context",
			"context %d exceeds the maximum of %d of package %s (context_window_size in its config)", window, longest, name)
	}
	// The list has the hash of every shard, so its hash identifies the weights.
	sum, err := cache.HashFile(filepath.Join(dir, p.List))
	if err != nil {
		return Model{}, err
	}
	s := p.Shape
	return Model{Path: dir, Model: record.Model{
		Name: name, SHA256: sum, Format: WebLLM, Architecture: s.ModelType, DType: p.Quantization, FileB: p.Bytes,
		WeightsB: p.Bytes, Context: window, MaxContext: max(longest, 0), Layers: s.NumHiddenLayers,
		Heads: s.NumAttentionHeads, KVHeads: s.NumKeyValueHeads, HeadDim: s.HeadDim, Hidden: s.HiddenSize,
		Vocab: s.VocabSize,
	}}, nil
}

// SHA256 returns the hash that runs record for a model. It downloads nothing, and writes nothing but built-in models.
func SHA256(ctx context.Context, name string) (string, error) {
	dir := name
	switch {
	case name == Tiny:
		return tiny.SHA256, nil // checked whenever it is written
	case Listed(name):
		if dir = filepath.Join(store(), name); !isFolder(dir) {
			return "", fault.New(fault.UnknownModel, "", "%s is not downloaded", name)
		}
	default:
		var err error
		if dir, err = Path(name); err != nil {
			return "", err
		}
	}
	return assumed(dir).hash(ctx, dir)
}

// hashOf hashes a GGUF; the parts of a split one, as one file.
func hashOf(ctx context.Context, path string) (string, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return cache.HashFile(path)
	}
	defer f.Close()
	return f.SHA256(ctx)
}
