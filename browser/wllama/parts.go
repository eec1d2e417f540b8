package wllama

import (
	"context"

	assets "llmparity/assets/wllama"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

func parts(engine.Config, engine.Settings) []engine.Search {
	return []engine.Search{browser.Module(title, assets.Version, assets.Files)}
}

var found = browser.Found(Name, title,
	"runs GGUF files of less than 4 GiB in WebAssembly; with WebGPU if the adapter has shader-f16")

// compare compares wllama, the page and the browser.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	e := &Engine{config: *c.(*Config), settings: s}
	if r, err := e.runtime(); err == nil {
		browser.Compare(ctx, was, e.browser(), r.served.Info.Parts[record.BundlePart], scripts, to)
	}
}
