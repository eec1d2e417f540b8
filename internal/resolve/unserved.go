package resolve

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/plan"
)

// unserved lists fields of a setup's plan that an engine does not support, so that its cells are refused. Each line
// begins with the field. Models and versions are not considered.
func unserved(p plan.Plan, name string) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := p.TensorParallel; n > 1 {
		say("tensor_parallel_size: %d: no engine here splits a model among GPUs; use 1, or a server that does", n)
	}
	if p.Quantization != "" {
		say("quantization: %s: not supported; choose a model file with such weights", p.Quantization)
	}
	k := p.Kind(name)
	if p.DType != "" && k.DTypes != nil && !slices.Contains(k.DTypes, p.DType) {
		say("dtype: %s: %s supports %s", p.DType, name, strings.Join(k.DTypes, " or "))
	}
	switch {
	case p.KVDType == "":
	case k.KVTypes == nil:
		say("kv_cache_dtype: %s: not supported by %s", p.KVDType, name)
	case !slices.Contains(k.KVTypes(p.DType), p.KVDType):
		say("kv_cache_dtype: %s: %s supports %s", p.KVDType, name, strings.Join(k.KVTypes(p.DType), ", "))
	}
	return out
}

// unheeded lists fields of a setup's plan that are ignored. Each line begins with the field.
func unheeded(p plan.Plan) (out []string) {
	if p.ContainerName != "" {
		out = append(out, fmt.Sprintf("container_name: %s is ignored; use the address of a server in a container",
			p.ContainerName))
	}
	if p.GPUMemory != 0 {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is ignored: no engine here reserves GPU memory in advance",
			p.GPUMemory))
	}
	return out
}
