package main

import (
	"testing"
)

func TestGenerateInEachEngine(t *testing.T) {
	browserTest(t)
	t.Parallel()
	for _, engine := range []string{"llamacpp", "llamacpp-oneshot", "ollama", "webllm"} {
		stdout, _ := well(t, program(t, "generate", "--engine", engine, "--max-tokens", "6", "--prompt", "The clock"))
		mentions(t, stdout, "generated  6 tokens in ", "\nload ")
	}
}
