package webllm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/assets/bundle"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/models/npm"
	"llmparity/internal/record"
)

// npmPackage is WebLLM's name on npm; bundleFile is its self-contained module.
const (
	npmPackage = "@mlc-ai/web-llm"
	bundleFile = "lib/index.js"
)

// Bundle is a build of WebLLM; the zero value is the built-in one.
type Bundle struct {
	Path    string // of an ES module; empty: the built-in one
	Version string // of a file without a package: its name and its hash; empty with a Path: unknown
	Origin  string // where it is from, e.g. npm
}

// Lacks names a WebLLM that must be downloaded.
func (w *WebLLM) Lacks() string {
	version := w.settings.Versions[versionAxis]
	_, kept := npm.Kept(w.settings.Cache, npmPackage, version, bundleFile)
	if w.config.Bundle != "" || version == "" || version == bundle.Version || kept {
		return ""
	}
	return "WebLLM " + version + " from npm"
}

// bundle returns the WebLLM to run: a file, a version from npm, which may have to be downloaded, or the built-in one.
func (w *WebLLM) bundle(ctx context.Context, say func(string)) (Bundle, error) {
	switch version := w.settings.Versions[versionAxis]; {
	case w.config.Bundle != "":
		path, err := filepath.Abs(w.config.Bundle)
		if err != nil {
			return Bundle{}, err
		}
		b := Bundle{Path: path, Version: versionBeside(path), Origin: record.OfFile + filepath.Base(path)}
		text, err := b.recognise()
		if err == nil && b.Version == "" {
			b.Version = called(path, text)
		}
		return b, err
	case version == "" || version == bundle.Version:
		return Bundle{}, nil
	default:
		path, err := npm.File(ctx, w.settings.Cache, npmPackage, version, bundleFile, say)
		return Bundle{Path: path, Version: version, Origin: "npm"}, err
	}
}

// recognise refuses a module that is not WebLLM. Its exports and what it offers to TVM's runtime identify any version.
func (b Bundle) recognise() (text []byte, err error) {
	text, err = b.read()
	if err == nil && !slices.ContainsFunc([]string{"MLCEngine", "TVMFFIWasm", "TVMWasm"}, func(name string) bool {
		return bytes.Contains(text, []byte(name))
	}) {
		err = fault.New(fault.NoBundle, nameModule, "%s is not a WebLLM module", b.Path)
	}
	return text, err
}

// called names a build that has no version by its file and the beginning of its hash, as many digits as Git shows.
func called(path string, text []byte) string {
	const digits = 7
	return fmt.Sprintf("%s (%s)", filepath.Base(path), fmt.Sprintf("%x", sha256.Sum256(text))[:digits])
}

// versionBeside returns the version in the package.json of the module's package; empty if there is none.
func versionBeside(path string) string {
	var npm struct{ Name, Version string }
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		switch {
		case err == nil && json.Unmarshal(text, &npm) == nil && npm.Name == npmPackage:
			return npm.Version
		case err == nil, dir == filepath.Dir(dir): // another package, or none
			return ""
		}
	}
}

func (b Bundle) version() string {
	if b.Path == "" {
		return bundle.Version
	}
	return cmp.Or(b.Version, "(unknown version)")
}

func (b Bundle) origin() string { return cmp.Or(b.Origin, record.BuiltIn) }

func (b Bundle) String() string { return "WebLLM " + b.version() }

// maxBundle is far above the size of any bundle, which is 4 to 7 MB.
const maxBundle = 256 << 20

const nameModule = "name an ES module, such as lib/index.js of the npm package " + npmPackage

// read returns the module's text, which is both served and hashed, even if the file changes.
func (b Bundle) read() ([]byte, error) {
	if b.Path == "" {
		return bundle.Script()
	}
	text, err := regular.Read(b.Path, maxBundle)
	if err != nil {
		return nil, fault.Wrap(fault.NoBundle, err, nameModule, "%s (%s) cannot be read", b, b.Path)
	}
	return text, nil
}

// Keeps returns why this build of WebLLM cannot keep a model in a storage: older ones would use another one without a
// word. The names of settings and values identify what it has.
func (b Bundle) Keeps(storage string) error {
	if storage == "" || storage == record.CacheAPI { // every version has it
		return nil
	}
	text, err := b.read()
	if err != nil {
		return err
	}
	has := func(pattern string) bool { return regexp.MustCompile(pattern).Match(text) }
	if has(`\bcacheBackend\b`) && has(`["'`+"`"+`]`+storage+`["'`+"`"+`]`) ||
		storage == record.IndexedDB && has(`\buseIndexedDBCache\b`) {
		return nil
	}
	return fault.New(fault.NotSupported, "use --storage cache, or --webllm-version "+bundle.Version,
		"%s cannot keep a model in storage %s", b, storage)
}

// Fits returns why a model library with these imports cannot run in this build of WebLLM. TVM's runtime is in the
// library and its other half in WebLLM; the functions between them have changed over the years.
func (b Bundle) Fits(imports []string) error {
	text, err := b.read()
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(imports), func(name string) bool {
		return !strings.HasPrefix(name, "TVM") || regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).Match(text)
	})
	if len(missing) == 0 {
		return nil
	}
	do := "use --webllm-version 0.2.80 or later, or another --model-lib"
	if strings.HasPrefix(missing[0], "TVMWasmPackedCFunc") {
		do = "use --webllm-version 0.2.79 or earlier, or another --model-lib"
	}
	return fault.New(fault.BadLibrary, do,
		"%s cannot run this model library, which needs another version of TVM's runtime: %s is missing",
		b, missing[0])
}
