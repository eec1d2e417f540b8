package webllm

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"llmparity/assets/page"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/models/npm"
	"llmparity/internal/record"
)

// dotted matches the digits of a version.
var dotted = regexp.MustCompile(`\d+(\.\d+)+`)

// compare compares the browser's version, and its build unless a script starts it, and the hashes of WebLLM, the page
// and the model library.
func compare(ctx context.Context, was record.EngineInfo, c engine.Config, s engine.Settings, to engine.Comparison) {
	own := c.(*Config)
	if own.Launch.Attach != "" {
		to.Unknown("the browser: a running one reports its version only when asked")
	} else {
		here := own.browserPart(ctx)
		to.Differ("browser", dotted.FindString(was.Parts["browser"]), dotted.FindString(here.Version))
		if id := find.BuildID(here.Path); id != "" && was.Parts["browser_build_id"] != "" {
			to.Differ("browser_build_id", was.Parts["browser_build_id"], id)
		} else if here.Err == nil {
			to.Unknown("the browser's build: %s is a script; only versions are compared", here.Path)
		}
		to.Unknown("the WebGPU adapter: known only when the browser runs (see llmparity doctor)")
	}
	if sum, err := page.SHA256(scripts); err == nil && was.Parts["page_sha256"] != "" {
		to.Differ("page_sha256", was.Parts["page_sha256"], sum)
	}
	to.Differ(record.BundlePart, was.Parts[record.BundlePart], bundleSHA256(s.Cache, was, own.Bundle))
	if l := was.Library; l != nil && !libraryHere(s.Cache, l.SHA256) {
		to.Unknown("the model library with SHA-256 %s is not in %s; another one will be compiled or downloaded, and its hash "+
			"recorded", l.SHA256, s.Cache)
	}
}

// libraryHere looks for a model library in the cache.
func libraryHere(dir, want string) bool {
	for _, pattern := range []string{"modellib/*.wasm", "libraries/*.wasm", "models/webllm/*/*.wasm"} {
		found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))) // the pattern is valid
		for _, path := range found {
			if sum, err := cache.HashFile(path); err == nil && sum == want {
				return true
			}
		}
	}
	return false
}

// bundleSHA256 returns the hash of the recorded WebLLM if it is here (built in, from npm, or a file); else empty.
func bundleSHA256(dir string, was record.EngineInfo, file string) string {
	path, _ := npm.Kept(dir, npmPackage, was.Version, bundleFile)
	if strings.HasPrefix(was.Origin, "file ") {
		path = file
	}
	if was.Origin == record.BuiltIn {
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
