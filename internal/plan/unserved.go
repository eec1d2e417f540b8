package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Unserved tells what a setup's plan asks for that an engine here does not do: a line each, the field first. It knows of no file and no
// version: whoever finds the model and the engine says what those lack.
func (p Plan) Unserved(engine string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	d := p.Deployment
	if d.ContainerName != "" {
		say("container_name: %s: no engine here runs in a container; run the server there and give its address to the engine openai", d.ContainerName)
	}
	if d.TensorParallel > 1 {
		say("tensor_parallel_size: %d: no engine here divides a model among GPUs; use 1, or a server that does with the engine openai", d.TensorParallel)
	}
	if d.Quantization != "" {
		say("quantization: %s: a model is as its file has it; name a file or a package with such weights", d.Quantization)
	}
	if d.GPUMemory != 0 {
		say("gpu_memory_utilization: %g: no engine here reserves a part of a GPU's memory; leave it out", d.GPUMemory)
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

// kvTypesOf are the types that an engine's KV cache can have; none where that can't be said from here.
func kvTypesOf(engine, dtype string) []string {
	switch {
	case engine == llamacpp:
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
