// Package wllama embeds wllama, llama.cpp compiled to WebAssembly, which make setup fetches.
package wllama

import (
	"embed"
	"io/fs"

	"llmparity/internal/kit/fault"
)

// Version is the embedded version of @wllama/wllama. A test compares it with package.json.
const Version = "3.8.1"

// dist has wllama's module and its WebAssembly, which come from npm and are never committed: make setup copies them
// there. The package builds without them; Files then returns an error.
//
//go:embed all:dist
var dist embed.FS

// Names of the files.
const (
	Module = "wllama.js"
	Wasm   = "wllama.wasm"
)

// Files has Module and Wasm.
func Files() (fs.FS, error) {
	files, _ := fs.Sub(dist, "dist") // it exists
	for _, name := range []string{Module, Wasm} {
		if _, err := fs.Stat(files, name); err != nil {
			return nil, fault.New(fault.NoBundle, "run make setup and build again",
				"this build does not include wllama %s", Version)
		}
	}
	return files, nil
}
