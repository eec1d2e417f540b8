package webllm

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"llmparity/assets/page"
	"llmparity/browser/find"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// dotted is a version's numbers.
var dotted = regexp.MustCompile(`\d+(\.\d+)+`)

// compare compares the browser by its version, and by its build where no script stands before the program; WebLLM, the
// page and the model library by their sums.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	own := c.(*Config)
	if own.Launch.Attach != "" {
		to.Unknown("the browser: one that runs already tells its version when it is asked")
	} else {
		here := own.browser(ctx)
		to.Differ("browser", dotted.FindString(was.Parts["browser"]), dotted.FindString(here.Version))
		if id := find.BuildID(here.Path); id != "" && was.Parts["browser_build_id"] != "" {
			to.Differ("the browser's build", was.Parts["browser_build_id"], id)
		} else if here.Err == nil {
			to.Unknown("the browser's build: %s is not the program itself; versions are compared", here.Path)
		}
		to.Unknown("the WebGPU adapter, and what it computes on: it is known when the browser runs (llmparity doctor asks it)")
	}
	if sum, err := page.SHA256(); err == nil && was.Parts["page_sha256"] != "" {
		to.Differ("the page, sha256", was.Parts["page_sha256"], sum)
	}
	to.Differ("WebLLM "+was.Version+", sha256", was.Parts["webllm_sha256"], bundleSHA256(s.Cache, was, own.Bundle))
	want := was.Parts["model_library_sha256"]
	if want != "" && !libraryHere(s.Cache, want) {
		to.Unknown("the model library: that of sha256 %s is not in %s; one will be compiled or fetched, and its sum stands "+
			"in the record", want, s.Cache)
	}
}

// libraryHere looks for a model library among those that were compiled or fetched here.
func libraryHere(dir, want string) bool {
	for _, pattern := range []string{"modellib/*.wasm", "libraries/*.wasm", "models/webllm/*/*.wasm"} {
		found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))) // the patterns are well formed
		for _, path := range found {
			if sum, err := cache.HashFile(path); err == nil && sum == want {
				return true
			}
		}
	}
	return false
}

// bundleSHA256 is the sum of the WebLLM that ran, if it is here: built in, from npm, or in a file. Empty: it is not.
func bundleSHA256(dir string, was record.EngineInfo, file string) string {
	path := filepath.Join(dir, "npm", strings.ReplaceAll(npmPackage, "/", "+"), was.Version, filepath.Base(bundleFile))
	origin := was.Parts["webllm_origin"]
	if strings.HasPrefix(origin, "file ") {
		path = file
	}
	if origin == "built in" {
		path = ""
	} else if path == "" {
		return ""
	}
	s, err := newSite(Bundle{Path: path})
	if err != nil {
		return ""
	}
	return s.sha256
}
