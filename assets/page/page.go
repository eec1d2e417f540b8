// Package page contains the web page in which engines run: index.html, page.js, worker.js and host.js, whose comment says
// what an engine's script exports; and WebLLM's own bundle. Another page, truth.html, allocates memory of known sizes.
//
// The bundle comes from npm and is never committed: make setup copies it into dist. The package builds without it;
// Bundle then returns an error. The page measures time and keeps a ledger of WebGPU memory; other memory is read from
// outside.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"

	"llmparity/internal/kit/fault"
)

// WebLLM is the built-in version of @mlc-ai/web-llm. The script of browser/webllm is written for it and wraps
// private parts, which older versions may lack. A test compares it with package.json.
const WebLLM = "0.2.86"

//go:embed index.html page.js worker.js host.js adapter.js ledger.js scores.js truth.html truth.js truth-worker.js
var files embed.FS

//go:embed all:dist
var dist embed.FS

// Truth is the path of the page that allocates memory of known sizes, without an engine.
const Truth = "truth.html"

// Files contains index.html, truth.html and the scripts.
func Files() fs.FS { return files }

// Bundle returns the built-in WebLLM bundle.
func Bundle() ([]byte, error) { return built("dist/web-llm.js", "WebLLM") }

// Catalogue returns WebLLM's list of models, which make setup extracts from the bundle.
// internal/models/catalogue reads it.
func Catalogue() ([]byte, error) { return built("dist/catalogue.json", "the list of models of WebLLM") }

// built is a file that make setup adds.
func built(path, what string) ([]byte, error) {
	b, err := dist.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.NoBundle, "run make setup and build again", "this build does not include %s %s",
			what, WebLLM)
	}
	return b, nil
}

// SHA256 hashes the page's files and an engine's scripts: names, lengths and contents in order of names.
func SHA256(scripts fs.FS) (string, error) {
	h := sha256.New()
	for _, of := range []fs.FS{files, scripts} {
		err := fs.WalkDir(of, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(of, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s %d\n", path, len(text))
			_, err = h.Write(text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
