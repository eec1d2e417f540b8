package browser

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"llmparity/assets/page"
	"llmparity/internal/fault"
)

// Bundle is a build of WebLLM; the zero value is the one that is built in.
type Bundle struct {
	Path    string // an ES module; empty: the one that is built in
	Version string // empty beside a Path: it does not say
	Origin  string // where it came from, in a few words: npm …
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
	return cmp.Or(b.Origin, "file")
}

func (b Bundle) String() string { return "WebLLM " + b.version() }

// maxBundle is far above the size of any bundle there was: they have 4 to 7 MB.
const maxBundle = 256 << 20

// read gives the module's text: what was read is what is served and hashed, whatever becomes of the file.
func (b Bundle) read() ([]byte, error) {
	if b.Path == "" {
		return page.Bundle()
	}
	const do = "name an ES module, as lib/index.js in the npm package @mlc-ai/web-llm is one"
	switch info, err := os.Stat(b.Path); {
	case err != nil:
		return nil, fault.Wrap(fault.NoBundle, err, do, "%s can't be read", b)
	case !info.Mode().IsRegular() || info.Size() > maxBundle:
		return nil, fault.New(fault.NoBundle, do, "%s is no bundle of WebLLM", b.Path)
	}
	text, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, fault.Wrap(fault.NoBundle, err, do, "%s can't be read", b)
	}
	return text, nil
}

// Readable says why the bundle can't be had.
func (b Bundle) Readable() error {
	_, err := b.read()
	return err
}

// Fits says why a model library can't run in this build of WebLLM, given the names that it imports. TVM's runtime is in
// the library, its other half in WebLLM, and the two speak to each other by functions that have changed over the years.
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
	for {
		_, rest, found := bytes.Cut(text, []byte(name))
		if !found {
			return false
		}
		if len(rest) == 0 || !isLetter(rest[0]) {
			return true
		}
		text = rest
	}
}

func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
