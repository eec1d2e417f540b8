package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hffolder"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/models/safetensors"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

// ofTokenizers are the files of which a folder has one, if it has a tokenizer.
var ofTokenizers = []string{"tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json"}

// openFolder describes a Hugging Face folder. A context of 0 is the model's maximum.
func openFolder(ctx context.Context, path, typed string, window int) (Model, error) {
	if !isFolder(path) {
		return Model{}, fault.New(fault.BadModel, "name its folder", "%s is a part of a Hugging Face model", path)
	}
	files, err := safetensors.Files(path)
	if err != nil {
		return Model{}, err
	}
	if len(files) == 0 {
		return Model{}, fault.New(fault.BadModel, "download the model with its safetensors files, or get a GGUF",
			"%s has no model.safetensors; other files of weights, such as pytorch_model.bin, are not read", path)
	}
	if !slices.ContainsFunc(ofTokenizers, func(name string) bool { return isThere(filepath.Join(path, name)) }) {
		return Model{}, fault.New(fault.BadModel, "download tokenizer.json into it", "%s has no tokenizer", path)
	}
	of, err := modelsize.FromHub(path)
	if err != nil {
		return Model{}, err
	}
	if of.MaxContext > 0 && window > of.MaxContext {
		return Model{}, fault.New(fault.Usage, "use a smaller context",
			"context %d exceeds the maximum of %d of %s (%s)", window, of.MaxContext, typed, of.LongestIn)
	}
	// Broken headers are found here rather than by an engine.
	if _, err := safetensors.Read(path); err != nil {
		return Model{}, err
	}
	m := Model{Path: path, Template: hasTemplate(path), Model: record.Model{Name: titled(typed), Format: HuggingFace,
		Architecture: of.Type, DType: of.DType, Parameters: of.Parameters, Context: cmp.Or(window, of.MaxContext),
		MaxContext: of.MaxContext, Layers: of.Layers, Heads: of.Heads, KVHeads: of.KVHeads, HeadDim: of.HeadDim,
		Hidden: of.Hidden, Vocab: of.Vocab}}
	most := int64(0)
	for name, bytes := range of.Stored {
		m.WeightsB += bytes
		if d, known := dtype.Named(name); known && bytes > most {
			m.DType, most = d.Name, bytes
		}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return Model{}, err
		}
		m.FileB += info.Size()
	}
	m.SHA256, err = hashOfFolder(ctx, path)
	return m, err
}

// hasTemplate reports whether a folder has a chat template.
func hasTemplate(dir string) bool {
	var c struct {
		Template any `json:"chat_template"`
	}
	err := regular.JSON(filepath.Join(dir, "tokenizer_config.json"), 16<<20, &c)
	return isThere(filepath.Join(dir, "chat_template.jinja")) || err == nil && c.Template != nil
}

// hashOfFolder hashes the files of the weights, one after another; without any, the configuration.
func hashOfFolder(ctx context.Context, path string) (string, error) {
	files, err := safetensors.Files(path)
	if err != nil || len(files) == 0 || !isFolder(path) {
		return cache.HashFile(path)
	}
	return hashOfFiles(ctx, files)
}

// hashOfFiles hashes files, one after another.
func hashOfFiles(ctx context.Context, files []string) (string, error) {
	h := sha256.New()
	for _, file := range files {
		f, err := regular.Open(file)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(whole.Until(ctx, h), f)
		if f.Close(); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// folderFacts describes a folder, or only a configuration.
func folderFacts(ctx context.Context, path string) (Facts, error) {
	i, err := configFacts(ctx, path)
	if err != nil || !isFolder(path) {
		return i, err
	}
	m, err := openFolder(ctx, path, path, 0)
	if err != nil { // a configuration without weights is one, too
		return i, nil
	}
	i.Model, i.model, i.Tokenizer, i.ChatTemplate = m.Model, m, "", "none"
	if m.Template {
		i.ChatTemplate = "its own"
	}
	for _, name := range ofTokenizers {
		if i.Tokenizer == "" && isThere(filepath.Join(path, name)) {
			i.Tokenizer = name
		}
	}
	return i, nil
}

func folderAsGGUF(path, name string) (*Converted, error) {
	g, err := hffolder.AsGGUF(path, name)
	if err != nil {
		return nil, err
	}
	return &Converted{File: g.File, Same: g.Same, Intact: g.Intact, Write: g.Write,
		plain: func(dtype string) string { return dtype }, id: folderID}, nil
}

// folderID identifies a folder by its weights, configuration and tokenizer.
func folderID(m Model) (string, error) {
	all := sha256.New()
	fmt.Fprintln(all, m.SHA256, m.Name)
	for _, file := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
		"chat_template.jinja"} {
		sum, err := cache.HashFile(filepath.Join(m.Path, file))
		if err != nil && isThere(filepath.Join(m.Path, file)) {
			return "", err
		}
		fmt.Fprintln(all, file, sum)
	}
	return fmt.Sprintf("%s-hf%d-gguf", hex.EncodeToString(all.Sum(nil))[:12], hffolder.Version), nil
}

func folderTokens(path string) (*tokenizer.Tokenizer, error) {
	v, err := hffolder.Tokenizer(path)
	if err != nil {
		return nil, err
	}
	return tokenizer.New(v), nil
}

func folderWeights(_ context.Context, m Model) (tensors []gguf.Weights, done func(), err error) {
	g, err := hffolder.AsGGUF(m.Path, m.Name)
	if err != nil {
		return nil, nil, err
	}
	return g.Tensors(), func() {}, nil
}

// Folder returns the Hugging Face folder of a GGUF, which is written into the cache once, how its weights compare with
// the file's, and a lock that keeps it there.
func Folder(ctx context.Context, m Model, say func(string)) (dir string, lock *os.File, err error) {
	root := cache.Dir(os.Getenv)
	dir = FolderOf(m)
	if dir == "" {
		return "", nil, fmt.Errorf("the hash of model %s is unknown", m.Name)
	}
	if !isThere(dir) {
		// Quantised weights become float32.
		err = cache.Once(ctx, root, dir, m.Parameters*4+m.FileB, say, func() error {
			say("converting the GGUF to a Hugging Face folder, once")
			aside, err := whole.NewFolder(filepath.Dir(dir))
			if err != nil {
				return err
			}
			defer aside.Remove()
			same, err := hffolder.Write(ctx, m.Path, aside.Path)
			if err == nil {
				err = os.WriteFile(filepath.Join(aside.Path, samenessFile), []byte(same), 0o644)
			}
			if err == nil {
				err = os.Chmod(aside.Path, 0o755)
			}
			if err == nil {
				err = whole.Replace(aside.Path, dir)
			}
			return fault.WriteError(err, dir, "set another cache folder with "+cache.Variable)
		})
	}
	if err != nil {
		return "", nil, err
	}
	return dir, cache.Use(root, dir), nil
}

// samenessFile says in a folder in the cache how its weights compare with the GGUF's.
const samenessFile = "llmparity.weights"

// FolderOf returns where the Hugging Face folder of a GGUF is in the cache; empty if its hash is unknown.
func FolderOf(m Model) string {
	if m.SHA256 == "" {
		return ""
	}
	return filepath.Join(cache.Dir(os.Getenv), "packages", fmt.Sprintf("%.12s-v%d-hf", m.SHA256, hffolder.Version))
}

// FolderWeights says how the weights of a folder in the cache compare with the GGUF's; empty: unknown.
func FolderWeights(dir string) record.Sameness {
	text, _ := os.ReadFile(filepath.Join(dir, samenessFile)) // without it, nothing is known
	return record.Sameness(strings.TrimSpace(string(text)))
}
