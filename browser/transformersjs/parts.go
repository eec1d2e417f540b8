package transformersjs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"

	assets "llmparity/assets/transformersjs"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

func parts(engine.Config, engine.Settings) []engine.Search {
	return []engine.Search{browser.Module(title, assets.Version, assets.Files)}
}

var found = browser.Found(Name, title, "runs ONNX and GGUF models, in WebAssembly or on WebGPU")

// hashOf hashes transformers.js and ONNX Runtime.
func hashOf(files fs.FS) (string, error) {
	h := sha256.New()
	for _, name := range []string{assets.Module, assets.Runtime, assets.Wasm} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("reading transformers.js: %w", err)
		}
		_, _ = h.Write(text) // it never fails
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// compare compares transformers.js, the page and the browser.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	e := New(*c.(*Config), s)
	if r, err := newRuntime(e); err == nil {
		browser.Compare(ctx, was, e.browser(), r.sha256, scripts, to)
	}
}
