// Package page is the web page in which WebLLM runs: our index.html, page.js, worker.js and engine.js, and WebLLM's own
// bundle; and another, truth.html, that takes memory of known sizes.
//
// The bundle comes from npm and is never committed: make setup copies it into dist. The package builds without it, and
// Bundle says so at run time. The page measures time, and keeps a ledger of what WebGPU was asked for; other memory is
// read from outside.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"llmparity/internal/fault"
)

// WebLLM is the version of @mlc-ai/web-llm that is built in, for which engine.js is written: it wraps parts that are
// not public. It does so in older ones too, as far as they have them. A test compares it with package.json.
const WebLLM = "0.2.86"

// Module is the address, below the page's own, from which engine.js imports WebLLM.
const Module = "dist/web-llm.js"

//go:embed index.html page.js worker.js engine.js adapter.js ledger.js scoring.js truth.html truth.js truth-worker.js all:dist
var files embed.FS

// Truth is the address, below the page's own, of the page that takes memory of known sizes, without WebLLM.
const Truth = "truth.html"

// Files holds index.html, truth.html, the scripts and dist/web-llm.js.
func Files() fs.FS { return files }

// Bundle gives WebLLM's bundle as it is built in, or a fault that says how to get it.
func Bundle() ([]byte, error) {
	b, err := files.ReadFile(Module)
	if err != nil {
		return nil, fault.New(fault.NoBundle, "run make setup and build again", "WebLLM %s is not part of this build",
			WebLLM)
	}
	return b, nil
}

// SHA256 is the sum of the page's own files, without WebLLM: their names, lengths and contents in the order of their
// names.
func SHA256() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "dist/") {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		_, err = h.Write(text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
