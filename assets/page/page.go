// Package page is the web page in which WebLLM runs: our index.html and page.js, and WebLLM's own bundle.
//
// The bundle comes from npm and is never committed: make setup copies it into dist. The package builds without it, and Bundle
// says so at run time. The page measures nothing but time; memory is read from outside.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"

	"llmparity/internal/fault"
)

// WebLLM is the version of @mlc-ai/web-llm that page.js is written for: it wraps parts that are not public. A test compares it
// with package.json.
const WebLLM = "0.2.86"

const bundle = "dist/web-llm.js"

//go:embed index.html page.js all:dist
var files embed.FS

// Files holds index.html, page.js and dist/web-llm.js.
func Files() fs.FS { return files }

// Bundle gives the SHA-256 of WebLLM's bundle, or a fault that says how to get it.
func Bundle() (string, error) {
	b, err := files.ReadFile(bundle)
	if err != nil {
		return "", fault.New(fault.NoBundle, "run make setup and build again", "WebLLM %s is not part of this build", WebLLM)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
