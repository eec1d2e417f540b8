package wllama

import (
	"context"

	assets "llmparity/assets/wllama"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Parts that wllama needs.
const (
	browserPart = "browser" // which WebLLM looks for, too
	modulePart  = "wllama"
)

func parts(engine.Config, engine.Settings) []engine.Search {
	return []engine.Search{{Name: modulePart, Find: func(context.Context) engine.Part {
		_, err := assets.Files()
		return engine.Part{Version: assets.Version, Err: err}
	}}}
}

func found(here engine.Here) engine.Finding {
	module, chrome := here.Parts[modulePart], here.Parts[browserPart]
	e := engine.Finding{Name: Name, Version: module.Version, Path: chrome.Path}
	if module.Err != nil || chrome.Err != nil || chrome.Path == "" {
		e.Can = "nothing yet; see what is missing"
		return e
	}
	e.Ready, e.Device = true, string(record.CPU)
	e.Can = "runs GGUF files of less than 4 GiB in WebAssembly; with WebGPU if the adapter has shader-f16"
	return e
}

// compare compares wllama, the page and the browser.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	e := &Engine{config: *c.(*Config), settings: s}
	if r, err := e.runtime(); err == nil {
		browser.Compare(ctx, was, e.browser(), r.served.Info.Parts[record.BundlePart], scripts, to)
	}
}
