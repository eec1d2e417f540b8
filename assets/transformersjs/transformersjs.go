// Package transformersjs embeds transformers.js and the ONNX Runtime that it computes with, which make setup fetches.
package transformersjs

import (
	"embed"
	"io/fs"

	"llmparity/internal/kit/fault"
)

// Version is the embedded version of @huggingface/transformers. A test compares it with package.json.
const Version = "4.3.1"

// dist has the modules and the WebAssembly, compressed, which come from npm and are never committed: make setup copies
// them there. The package builds without them; Files then returns an error.
//
//go:embed all:dist
var dist embed.FS

// Names of the files. ONNX Runtime starts its threads by the name of its module.
const (
	Module  = "transformers.min.js"
	Runtime = "ort-wasm-simd-threaded.asyncify.mjs"
	Wasm    = "ort-wasm-simd-threaded.asyncify.wasm.gz"
)

// Files has Module, Runtime and Wasm.
func Files() (fs.FS, error) {
	files, _ := fs.Sub(dist, "dist") // it exists
	for _, name := range []string{Module, Runtime, Wasm} {
		if _, err := fs.Stat(files, name); err != nil {
			return nil, fault.New(fault.NoBundle, "run make setup and build again",
				"this build does not include transformers.js %s", Version)
		}
	}
	return files, nil
}
