// Package modellib carries the compiler of model libraries: a Python program on Apache TVM and Emscripten that turns a
// model's shape into the WebAssembly file that WebLLM loads beside the model's weights. The program's own comments say
// what it makes and what not.
//
// This package can't run it: that is internal/models/modellib.
package modellib

import "embed"

// Files is the program as it lies here: compile.py is its entry, requirements.txt what it needs in its Python
// environment.
//
//go:embed *.py requirements.txt runtime
var Files embed.FS
