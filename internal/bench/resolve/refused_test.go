package resolve

import (
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

func TestUnserved(t *testing.T) {
	p, err := plan.Parse([]byte("model: tiny\nprompts: [a]\nmax_tokens: 4\n"), "p.yaml", kinds.All...)
	check.Err(t, err)
	for _, c := range []struct {
		kv, dtype    string
		engine, want string
	}{
		{"", "", "webllm", ""},
		{"f32", "", "webllm", ""},
		{"f32", "f16", "webllm", ""},
		{"q8_0", "", "webllm", `kv_cache_dtype: q8_0: webllm supports f32, f16`},
		{"q8_0", "", "llamacpp", ""},
		{"q8_0", "", "ollama", ""},
		{"bf16", "", "ollama", `kv_cache_dtype: bf16: ollama supports f16, q8_0, q4_0`},
		{"f16", "", "openai", `kv_cache_dtype: f16: not supported by openai`},
		{"", "bf16", "openai", ""},
		{"", "bf16", "exec:x", ""},
		{"", "bf16", "llamacpp", `dtype: bf16: llamacpp supports f32 or f16`},
	} {
		p.KVDType, p.DType = c.kv, c.dtype
		if got := strings.Join(unserved(p, c.engine), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.engine, got, c.want)
		}
	}
}

// Fields of other tools' plans are refused where they would change cells, else named.
func TestFieldsOfOtherTools(t *testing.T) {
	p, err := plan.Parse([]byte("model: tiny\nprompts: [a]\nmax_tokens: 4\n"), "p.yaml", kinds.All...)
	check.Err(t, err)
	p.DType, p.KVDType, p.Deployment = "bf16", "fp8", plan.Deployment{ContainerName: "vllm-inference",
		TensorParallel: 4, Quantization: "awq", GPUMemory: 0.9}
	var fields []string
	for _, line := range append(unheeded(p), unserved(p, "webllm")...) {
		field, _, _ := strings.Cut(line, ":")
		fields = append(fields, field)
	}
	if got := strings.Join(fields, " "); got != "container_name gpu_memory_utilization tensor_parallel_size quantization dtype kv_cache_dtype" {
		t.Error(got)
	}
}
