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

// Parts that transformers.js needs.
const (
	browserPart = "browser" // which WebLLM looks for, too
	modulePart  = title
)

func parts(engine.Config, engine.Settings) []engine.Search {
	return []engine.Search{{Name: modulePart, Find: func(context.Context) engine.Part {
		_, err := assets.Files()
		return engine.Part{Version: assets.Version, Err: err}
	}}}
}

func found(here engine.Here) engine.Finding {
	module, chrome := here.Parts[modulePart], here.Parts[browserPart]
	f := engine.Finding{Name: Name, Version: assets.Version, Path: chrome.Path}
	if module.Err != nil || chrome.Err != nil || chrome.Path == "" {
		f.Can = "nothing yet; see what is missing"
		return f
	}
	f.Ready, f.Device = true, string(record.CPU)
	f.Can = "runs ONNX and GGUF models, in WebAssembly or on WebGPU"
	return f
}

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
