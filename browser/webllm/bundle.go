package webllm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/npm"
)

// npmPackage is WebLLM's name on npm; bundleFile is its module, which stands by itself.
const (
	npmPackage = "@mlc-ai/web-llm"
	bundleFile = "lib/index.js"
)

// Bundle is a build of WebLLM; the zero value is the one that is built in.
type Bundle struct {
	Path    string // an ES module; empty: the one that is built in
	Version string // empty beside a Path: it does not say
	Origin  string // where it came from, in a few words: npm …
}

// lacks says which WebLLM must be fetched; empty: none.
func lacks(c Config, s engine.Settings) string {
	version := s.Versions[versionAxis]
	if c.Bundle != "" || version == "" || version == page.WebLLM ||
		npm.Kept(s.Cache, npmPackage, version, bundleFile) {
		return ""
	}
	return "WebLLM " + version + " from npm"
}

// findBundle returns the WebLLM to run: a file, a version from npm, which may have to be downloaded, or the built-in
// one.
func findBundle(ctx context.Context, c Config, s engine.Settings, say func(string)) (Bundle, error) {
	switch version := s.Versions[versionAxis]; {
	case c.Bundle != "":
		path, err := filepath.Abs(c.Bundle)
		if err != nil {
			return Bundle{}, err
		}
		b := Bundle{Path: path, Version: versionBeside(path), Origin: "file " + filepath.Base(path)}
		return b, b.recognise()
	case version == "" || version == page.WebLLM:
		return Bundle{}, nil
	default:
		path, err := npm.File(ctx, s.Cache, npmPackage, version, bundleFile, say)
		return Bundle{Path: path, Version: version, Origin: "npm"}, err
	}
}

// recognise refuses a module that is no WebLLM. By what it exports and by what it gives TVM's runtime any version is
// known.
func (b Bundle) recognise() error {
	text, err := b.read()
	if err != nil {
		return err
	}
	for _, name := range []string{"MLCEngine", "TVMFFIWasm", "TVMWasm"} {
		if bytes.Contains(text, []byte(name)) {
			return nil
		}
	}
	return fault.New(fault.NoBundle, nameModule, "%s is no WebLLM module", b.Path)
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

func (b Bundle) version() string {
	if b.Path == "" {
		return page.WebLLM
	}
	return cmp.Or(b.Version, "of unknown version")
}

func (b Bundle) origin() string {
	if b.Path == "" {
		return "built in"
	}
	return b.Origin
}

func (b Bundle) String() string { return "WebLLM " + b.version() }

// maxBundle is far above the size of any bundle there was: they have 4 to 7 MB.
const maxBundle = 256 << 20

const nameModule = "name an ES module, as lib/index.js in the npm package " + npmPackage + " is one"

// read gives the module's text: what was read is what is served and hashed, whatever becomes of the file.
func (b Bundle) read() ([]byte, error) {
	if b.Path == "" {
		return page.Bundle()
	}
	switch info, err := os.Stat(b.Path); {
	case err != nil:
		return nil, fault.Wrap(fault.NoBundle, err, nameModule, "%s can't be read", b)
	case !info.Mode().IsRegular() || info.Size() > maxBundle:
		return nil, fault.New(fault.NoBundle, nameModule, "%s is no bundle of WebLLM", b.Path)
	}
	text, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, fault.Wrap(fault.NoBundle, err, nameModule, "%s can't be read", b)
	}
	return text, nil
}

// Fits says why a model library can't run in this build of WebLLM, given the names that it imports. TVM's runtime is
// in the library, its other half in WebLLM, and the two speak to each other by functions that have changed over the
// years.
func (b Bundle) Fits(imports []string) error {
	text, err := b.read()
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(imports), func(name string) bool {
		return !strings.HasPrefix(name, "TVM") || hasWord(text, name)
	})
	if len(missing) == 0 {
		return nil
	}
	do := "choose a --webllm-version from 0.2.80 on, or another --model-lib"
	if strings.HasPrefix(missing[0], "TVMWasmPackedCFunc") {
		do = "choose a --webllm-version up to 0.2.79, or another --model-lib"
	}
	return fault.New(fault.BadLibrary, do,
		"%s can't run this model library, which is made for another generation of TVM's runtime: it does not offer %s",
		b, missing[0])
}

// hasWord tells whether text holds name by itself, not as the beginning of a longer one.
func hasWord(text []byte, name string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(name) + `\b`).Match(text)
}
