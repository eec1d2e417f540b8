// Package kinds is the registry of engines: a line each. It holds no engine, only what the program knows of each.
package kinds

import (
	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
	"llmparity/native/protocol"
)

// All are in the order in which they are listed.
var All = engine.Kinds{
	webllm.Kind,
	llamacpp.Kind,
	llamacpp.OneShotKind,
	ollama.Kind,
	openai.Kind,
	protocol.Kind,
}
