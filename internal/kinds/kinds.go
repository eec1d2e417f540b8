// Package kinds is the registry of engines, one line each.
package kinds

import (
	"llmparity/browser/transformersjs"
	"llmparity/browser/webllm"
	"llmparity/browser/wllama"
	"llmparity/internal/engine"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
	"llmparity/native/protocol"
	"llmparity/native/server"
)

// All lists the engines in display order.
var All = engine.Kinds{
	webllm.Kind,
	wllama.Kind,
	transformersjs.Kind,
	llamacpp.Kind,
	llamacpp.OneShotKind,
	ollama.Kind,
	huggingface.Kind,
	server.VLLM,
	server.SGLang,
	openai.Kind,
	server.Any,
	protocol.Kind,
}
