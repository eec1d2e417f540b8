package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/npm"
)

// webllmPackage is WebLLM's name on npm; bundleFile is its module, which stands by itself.
const (
	webllmPackage = "@mlc-ai/web-llm"
	bundleFile    = "lib/index.js"
)

// bundleFlags is what a user may say of which WebLLM runs.
type bundleFlags struct{ version, file string }

func (f *bundleFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "webllm-bundle", "", "a build of WebLLM: an ES module on disk")
}

// find gives the bundle, and fetches it where it must.
func (f *bundleFlags) find(ctx context.Context, engines []string, say func(string)) (browser.Bundle, error) {
	switch {
	case !slices.Contains(engines, browser.Name):
		return browser.Bundle{}, nil
	case f.file != "":
		path, err := filepath.Abs(f.file)
		if err != nil {
			return browser.Bundle{}, err
		}
		b := browser.Bundle{Path: path, Version: versionBeside(path), Origin: "file " + filepath.Base(path)}
		if err := b.Readable(); err != nil {
			return b, err
		}
		return b, recognise(path)
	case f.version == "" || f.version == page.WebLLM:
		return browser.Bundle{}, nil
	}
	path, err := npm.File(ctx, cache.Dir(os.Getenv), webllmPackage, f.version, bundleFile, say)
	return browser.Bundle{Path: path, Version: f.version, Origin: "npm"}, err
}

// recognise refuses a module that is no WebLLM. By what it exports and by what it gives TVM's runtime any version is
// known.
func recognise(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.NoBundle, err, "", "%s can't be read", path)
	}
	for _, name := range []string{"MLCEngine", "TVMFFIWasm", "TVMWasm"} {
		if bytes.Contains(text, []byte(name)) {
			return nil
		}
	}
	return fault.New(fault.NoBundle, "name an ES module, as lib/index.js in the npm package "+webllmPackage+" is one",
		"%s is no WebLLM module", path)
}

// versionBeside is the version that the package says to which a module belongs; empty where there is none.
func versionBeside(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		var npm struct{ Name, Version string }
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err == nil {
			if json.Unmarshal(text, &npm) == nil && npm.Name == webllmPackage {
				return npm.Version
			}
			return "" // another package's
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
