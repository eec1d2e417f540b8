// Package page contains the web page in which engines run: index.html, page.js, worker.js and host.js, whose comment
// says what an engine's script exports. Another page, truth.html, allocates memory of known sizes. WebLLM's bundle from
// npm is here, too.
//
// The page measures time and keeps a ledger of WebGPU memory; other memory is read from outside.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
)

//go:embed index.html page.js worker.js host.js call.js hand.js adapter.js health.js kernels.js ledger.js scores.js storage.js truth.html truth.js truth-worker.js
var files embed.FS

// Truth is the path of the page that allocates memory of known sizes, without an engine.
const Truth = "truth.html"

// Files contains index.html, truth.html and the scripts.
func Files() fs.FS { return files }

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
