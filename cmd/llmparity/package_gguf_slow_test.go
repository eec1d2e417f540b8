//go:build slow

package main

import (
	"path/filepath"
	"testing"

	"llmparity/internal/models/tiny"
)

// WebLLM and llama.cpp measure the same 4 bits, whichever side they come from.
func TestBothEnginesRunPackage(t *testing.T) {
	dir := madePackage(t, "q4", func(path string) error { return tiny.WriteRandomFile(t.Context(), path, quantised) })
	cmd := program(t, "run", "--model", filepath.Base(dir), "--engines", "webllm,llamacpp", "--max-tokens", "16",
		"--repetitions", "1", "--adapter", "swiftshader", "--llama-server", withoutAMX(t))
	cmd.Dir = filepath.Dir(dir)
	stdout, _ := well(t, cmd, "Output:")
	sameFile(t, cmd.Dir, stdout, "webllm", "llamacpp")
	t.Log(stdout)
}
