package plan

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/engine"
)

// Unserved tells what a setup's plan asks for that an engine here does not do, so that its cells would be others than
// those asked for: a line each, the field first. It knows of no file and no version: whoever finds the model and the
// engine says what those lack.
func (p Plan) Unserved(name string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := p.TensorParallel; n > 1 {
		say("tensor_parallel_size: %d: no engine here divides a model among GPUs; use 1, or a server that does", n)
	}
	if p.Quantization != "" {
		say("quantization: %s: a model is as its file has it; name a file or a package with such weights",
			p.Quantization)
	}
	k, _ := p.kinds.Of(name)
	if k == nil {
		k = new(engine.Kind)
	}
	if p.DType != "" && k.DTypes != nil && !slices.Contains(k.DTypes, p.DType) {
		say("dtype: %s: %s computes in %s", p.DType, name, strings.Join(k.DTypes, " or "))
	}
	if p.KVDType == "" {
		return out
	}
	switch {
	case k.KVTypes == nil:
		say("kv_cache_dtype: %s: the KV cache of %s can't be chosen from here", p.KVDType, name)
	case !slices.Contains(k.KVTypes(p.DType), p.KVDType):
		say("kv_cache_dtype: %s: the KV cache of %s is %s", p.KVDType, name, strings.Join(k.KVTypes(p.DType), ", "))
	}
	return out
}

// Unheeded tells what a setup's plan says that makes no difference here: a line each, the field first.
func (p Plan) Unheeded() []string {
	var out []string
	if p.ContainerName != "" {
		out = append(out, fmt.Sprintf("container_name: %s is not heeded: engines run on this machine as they are, and a server that runs in a "+
			"container is asked by its address", p.ContainerName))
	}
	if p.GPUMemory != 0 {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is not heeded: no engine here takes a share of a GPU's memory in advance", p.GPUMemory))
	}
	return out
}
