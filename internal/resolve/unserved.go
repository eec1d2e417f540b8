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
	k := p.Kind(name)
	if n := p.TensorParallel; n > 1 && !k.Remote {
		say("tensor_parallel_size: %d: %s does not split a model among GPUs; use 1, or openai with a server that does", n, name)
	}
	if p.Quantization != "" && !k.Remote {
		say("quantization: %s: not supported by %s; choose a model file with such weights", p.Quantization, name)
	}
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

// unheeded lists fields of a setup's plan that are ignored, or only enter predictions. Each line begins with the field.
func unheeded(p plan.Plan) (out []string) {
	for _, name := range p.Engines {
		k := p.Kind(name)
		if k.Remote && (p.DType != "" || p.TensorParallel > 1 || p.Quantization != "") {
			out = append(out, fmt.Sprintf("dtype, tensor_parallel_size, quantization: used for predictions "+
				"only, because the server of %s has its own settings; set the values that it was started with", name))
		} else if p.DType != "" && k.DTypes != nil && !k.Heeds("dtype") {
			out = append(out, fmt.Sprintf("dtype: %s is ignored by %s; it computes with the weights of the file, and "+
				"kv_cache_dtype sets the dtype of its KV cache", p.DType, name))
		}
	}
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
