package webllm

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/fault"
	"llmparity/internal/npm"
)

// npmPackage is WebLLM's name on npm; bundleFile is its module, which stands by itself.
const (
	npmPackage = "@mlc-ai/web-llm"
	bundleFile = "lib/index.js"
)

// bundle says which WebLLM runs: a file, a version that npm has, or, where neither is said, the one that is built in.
type bundle struct{ dir, version, file string }

// lacks says what must be fetched; empty: nothing.
func (b bundle) lacks() string {
	if b.file != "" || b.version == "" || b.version == page.WebLLM ||
		npm.Kept(b.dir, npmPackage, b.version, bundleFile) {
		return ""
	}
	return "WebLLM " + b.version + " from npm"
}

// find gives the bundle, and fetches it where it must.
func (b bundle) find(ctx context.Context, say func(string)) (browser.Bundle, error) {
	switch {
	case b.file != "":
		path, err := filepath.Abs(b.file)
		if err != nil {
			return browser.Bundle{}, err
		}
		found := browser.Bundle{Path: path, Version: versionBeside(path), Origin: "file " + filepath.Base(path)}
		if err := found.Readable(); err != nil {
			return found, err
		}
		return found, recognise(path)
	case b.version == "" || b.version == page.WebLLM:
		return browser.Bundle{}, nil
	}
	path, err := npm.File(ctx, b.dir, npmPackage, b.version, bundleFile, say)
	return browser.Bundle{Path: path, Version: b.version, Origin: "npm"}, err
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
	return fault.New(fault.NoBundle, "name an ES module, as lib/index.js in the npm package "+npmPackage+" is one",
		"%s is no WebLLM module", path)
}

// versionBeside is the version that the package says to which a module belongs; empty where there is none.
func versionBeside(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		var npm struct{ Name, Version string }
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err == nil {
			if json.Unmarshal(text, &npm) == nil && npm.Name == npmPackage {
				return npm.Version
			}
			return "" // another package's
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
