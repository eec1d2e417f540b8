package models

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"llmparity/internal/host/cache"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/record"
)

// Toy is the name of a format that only tests have.
const Toy = "toy"

// RegisterToy adds the row of the toy format, whose files begin with TOY!, and returns what removes it.
func RegisterToy() (remove func()) {
	was := formats
	sizes := func(path string) (modelsize.Model, error) {
		m, err := modelsize.FromNumbers(modelsize.Numbers{Parameters: 1e6, Layers: 2, Heads: 4, Hidden: 64, Vocab: 512})
		m.Name, m.Source, m.Only, m.MaxContext = filepath.Base(path), Toy, Toy, 256
		return m, err
	}
	describe := func(path string, window int) (Model, error) {
		sum, err := cache.HashFile(path)
		return Model{Path: path, Model: record.Model{Name: filepath.Base(path), SHA256: sum, Format: Toy, DType: "f32",
			Context: cmp.Or(window, 256), MaxContext: 256, Layers: 2}}, err
	}
	formats = append(formats[:len(formats):len(formats)], &Format{Name: Toy, Title: "toy model", Kind: "toy-model",
		Named: "a toy file", Exts: []string{".toy"}, Advice: "there is no converter",
		is: func(_ string, info fs.FileInfo, begin string) bool { return info.Mode().IsRegular() && begin == "TOY!" },
		open: func(_ context.Context, path, _ string, window int) (Model, error) {
			return describe(path, window)
		},
		hash: func(_ context.Context, path string) (string, error) { return cache.HashFile(path) }, sizes: sizes,
		Facts: func(_ context.Context, path string) (Facts, error) {
			m, err := describe(path, 0)
			return Facts{Model: m.Model, model: m}, err
		}})
	return func() { formats = was }
}

// WriteToy writes a toy model.
func WriteToy(path string) error { return os.WriteFile(path, []byte("TOY! and its weights"), 0o600) }
