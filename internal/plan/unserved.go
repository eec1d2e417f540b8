package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Unserved tells what a setup's plan asks for that an engine here does not do, so that its cells would be others than
// those asked for: a line each, the field first. It knows of no file and no version: whoever finds the model and the
// engine says what those lack.
func (p Plan) Unserved(engine string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := p.TensorParallel; n > 1 {
		say("tensor_parallel_size: %d: no engine here divides a model among GPUs; use 1, or a server that does with the engine openai", n)
	}
	if p.Quantization != "" {
		say("quantization: %s: a model is as its file has it; name a file or a package with such weights",
			p.Quantization)
	}
	if p.DType == "bf16" && (engine == webllm || engine == llamacpp || engine == ollama) {
		say("dtype: bf16: %s computes in f32 or f16", engine)
	}
	if p.KVDType != "" {
		if known := kvTypesOf(engine, p.DType); !slices.Contains(known, p.KVDType) {
			switch {
			case len(known) > 0:
				say("kv_cache_dtype: %s: the KV cache of %s is %s", p.KVDType, engine, strings.Join(known, ", "))
			default:
				say("kv_cache_dtype: %s: the KV cache of %s can't be chosen from here", p.KVDType, engine)
			}
		}
	}
	return out
}

// Unheeded tells what a setup's plan says that makes no difference here: a line each, the field first.
func (p Plan) Unheeded() []string {
	var out []string
	if p.ContainerName != "" {
		out = append(out, fmt.Sprintf("container_name: %s is not heeded: engines run on this machine as they are, and a server that runs in a "+
			"container is asked by its address, with the engine openai", p.ContainerName))
	}
	if p.GPUMemory != 0 {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is not heeded: no engine here takes a share of a GPU's memory in advance", p.GPUMemory))
	}
	return out
}

// kvTypesOf are the types that an engine's KV cache can have; none where that can't be said from here.
func kvTypesOf(engine, dtype string) []string {
	switch {
	case engine == llamacpp, engine == llamacpp+"-oneshot":
		return CacheTypes()
	case engine == ollama:
		return OllamaKVTypes()
	case engine == webllm && dtype == "f16":
		return []string{"f16"}
	case engine == webllm:
		return []string{"f32"}
	}
	return nil
}
