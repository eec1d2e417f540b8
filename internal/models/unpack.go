package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
)

// Unpacked returns a model that also has a GGUF of the same weights, which is written into the cache once. With dry,
// nothing is written, and the GGUF has no path unless it is there.
func (f Finder) Unpacked(ctx context.Context, m Model, dry bool) (Model, error) {
	g, err := named(m.Format).toGGUF(m.Path, m.Name)
	if err != nil {
		return m, err
	}
	name, err := g.id(m)
	if err != nil {
		return m, err
	}
	own := m
	own.Path, own.From, own.Format, own.WeightsB, own.FileB = "", m.Path, GGUF, 0, g.File.Size
	own.DType = g.plain(m.DType)
	for _, t := range g.File.Tensors {
		own.WeightsB += t.Size
	}
	root := cache.Dir(os.Getenv)
	path := filepath.Join(root, "packages", name, "model.gguf")
	if !dry {
		if isThere(path) { // the model may have been damaged since; its engine would refuse it
			err = g.Intact(ctx)
		} else {
			err = f.unpack(ctx, g, noun(m), root, path)
		}
		if err != nil {
			return m, err
		}
		own.Lock = cache.Use(root, filepath.Dir(path))
	}
	if isThere(path) {
		file, err := Open(ctx, path, m.Context)
		if err != nil {
			return m, err
		}
		own.Path, own.Was, own.SHA256 = path, file.Was, file.SHA256
	}
	m.Weights, own.Weights = g.Same, g.Same
	own.Policy = map[string]string{"model_file": fmt.Sprintf("GGUF (%s) of the "+noun(m), g.File.Dominant())}
	m.GGUF = &own
	return m, nil
}

// noun is what a model that is converted is called.
func noun(m Model) string {
	if m.Fixed() {
		return "package"
	}
	return "folder"
}

// packageID identifies a package by its weights, settings and tokenizer.
func packageID(m Model) (string, error) {
	all := sha256.New()
	fmt.Fprintln(all, m.SHA256, m.Name)
	for _, file := range []string{"mlc-chat-config.json", "tokenizer.json", "tokenizer_config.json"} {
		sum, err := cache.HashFile(filepath.Join(m.Path, file))
		if err != nil && isThere(filepath.Join(m.Path, file)) {
			return "", err
		}
		fmt.Fprintln(all, file, sum)
	}
	return fmt.Sprintf("%s-v%d-gguf", hex.EncodeToString(all.Sum(nil))[:12], mlc.Version), nil
}

// unpack writes a GGUF into the cache.
func (f Finder) unpack(ctx context.Context, g *Converted, what, root, path string) error {
	dir := filepath.Dir(path)
	return cache.Once(ctx, root, dir, g.File.Size, f.Say, func() error {
		f.Say("converting the " + what + " to a GGUF, once, and comparing each weight")
		aside, err := whole.NewFolder(filepath.Dir(dir))
		if err == nil {
			defer aside.Remove()
			err = g.Write(ctx, filepath.Join(aside.Path, filepath.Base(path)))
		}
		if err == nil {
			err = os.Chmod(aside.Path, 0o755)
		}
		if err == nil {
			err = whole.Replace(aside.Path, dir)
		}
		return fault.WriteError(err, path, "set another cache folder with "+cache.Variable)
	})
}

// Outline describes the GGUF of a converted model for an estimate.
func Outline(m Model) (modelsize.Model, error) {
	g, err := assumed(m.From).toGGUF(m.From, m.Name)
	if err != nil {
		return modelsize.Model{}, err
	}
	return modelsize.FromGGUF(g.File)
}
