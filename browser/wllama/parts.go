package wllama

import (
	"context"
	"regexp"

	"llmparity/assets/page"
	assets "llmparity/assets/wllama"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// digits matches those of a version.
var digits = regexp.MustCompile(`\d+(\.\d+)+`)

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

// compare compares the hashes of wllama and of the page, and the browser's version.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	if r, err := (&Engine{config: *c.(*Config), settings: s}).runtime(); err == nil {
		to.Differ(record.BundlePart, was.Parts[record.BundlePart], r.served.Info.Parts[record.BundlePart])
	}
	if sum, err := page.SHA256(scripts); err == nil && was.Parts["page_sha256"] != "" {
		to.Differ("page_sha256", was.Parts["page_sha256"], sum)
	}
	path, err := c.(*Config).Browser(0).Find()
	if err != nil {
		to.Differ("browser", was.Parts["browser"], "")
		return
	}
	is := engine.Version(ctx, fault.NoChrome, path, "--version").Version
	to.Differ("browser", digits.FindString(was.Parts["browser"]), digits.FindString(is))
}
