// Package bundle embeds WebLLM and its list of models, which make setup fetches. What any page needs is in assets/page.
package bundle

import (
	"embed"

	"llmparity/internal/kit/fault"
)

// Version is the built-in version of @mlc-ai/web-llm. The script of browser/webllm is written for it and wraps
// private parts, which older versions may lack. A test compares it with package.json.
const Version = "0.2.86"

// dist has WebLLM's bundle and its list of models, which come from npm and are never committed: make setup copies them
// there. The package builds without them; Script and Catalogue then return an error.
//
//go:embed all:dist
var dist embed.FS

// Script returns WebLLM as one script.
func Script() ([]byte, error) { return built("dist/web-llm.js", "WebLLM") }

// Catalogue returns WebLLM's list of models, which make setup extracts from the bundle.
// internal/models/catalogue reads it.
func Catalogue() ([]byte, error) { return built("dist/catalogue.json", "the list of models of WebLLM") }

// built is a file that make setup adds.
func built(path, what string) ([]byte, error) {
	b, err := dist.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.NoBundle, "run make setup and build again", "this build does not include %s %s",
			what, Version)
	}
	return b, nil
}
