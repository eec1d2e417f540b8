package main

import (
	"strings"
	"testing"

	"llmparity/internal/fault"
)

func TestGenerateInEachEngine(t *testing.T) {
	for _, engine := range []string{"llamacpp", "llamacpp-oneshot", "ollama", "webllm"} {
		stdout, _ := well(t, program(t, "generate", "--engine", engine, "--max-tokens", "6", "--prompt", "The clock"))
		mentions(t, stdout, "generated  6 tokens in ", "\nload ")
	}
}

func TestEngineErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		code fault.Kind
		say  string
	}{
		{"generate", fault.Usage, "--engine: need one engine, got 0"},
		{"generate --engine llamacpp --engine ollama", fault.Usage, "--engine: need one engine, got 2"},
		{"generate --engine llamacpp --temperature nan", fault.Usage, "--temperature NaN"},
		{"generate --engine llamacpp --prompt a --prompt b", fault.Usage, "--prompt: need one prompt, got 2"},
		{"generate --engine llamacp", fault.UnknownEngine, `did you mean "llamacpp"`},
		{"generate --engine llamacpp --model missing.gguf", fault.BadModel, "missing.gguf"},
		{"generate --engine llamacpp --max-tokens 5000", fault.PromptTooLong, "5000"},
		{"generate --engine ollama --ollama-url 127.0.0.1:9 --model served:m", fault.ServerUnreachable, "127.0.0.1:9"},
		{"llamacpp --model x.gguf", fault.Usage, "generate --engine llamacpp-oneshot"},
		{"ollama --start", fault.Usage, "generate --engine ollama"},
		{"truth", fault.Usage, "docs/reference/accuracy.md"},
		{"run --engines llamacpp --llamacpp-cache-type-v q4_0", fault.Usage, "needs flash attention"},
		{"run --engines llamacpp --llamacpp-flash-attention perhaps", fault.Usage, "use off, on or auto"},
		{"run --engines llamacpp --llamacpp-cli x", fault.Usage, "applies only to llamacpp-oneshot"},
		{"run --engines llamacpp --llamacpp-gpu-layers 2", fault.NoLlamaServer, "no GPU for 2 layers"},
		{"run --engines ollama --ollama-url 127.0.0.1:9 --ollama-keep-alive 30s", fault.Usage,
			"ollama.keep_alive: 30s"},
		{"run --engines ollama --ollama-url 127.0.0.1:9 --repetitions 1", fault.ServerUnreachable,
			"connection refused"},
		{"run --engines ollama --model served:m", fault.NotSupported, "served:m"},
		{"run --engines ollama --ollama-kv-type f32", fault.Usage, "use f16, q8_0 or q4_0"},
		{"run --engines ollama --ollama-keep-alive 0", fault.Usage, "--ollama-keep-alive"},
		{"run --engines llamacpp --ollama-gpu", fault.Usage, "--ollama-gpu applies only to ollama"},
	} {
		refusal(t, program(t, strings.Fields(c.args)...), c.code, c.say)
	}
}
