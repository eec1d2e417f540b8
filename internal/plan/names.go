package plan

import (
	"strings"

	"llmparity/internal/record"
)

// listOf is the list that a field of one value is one of; of any other name it is that name.
func listOf(name string) string {
	list, ok := map[string]string{"model": "models", "engine": "engines", "prompt": "prompts",
		"input_length": "input_lengths", "output_length": "output_lengths", "max_tokens": "output_lengths",
		"batch_size": "batch_sizes", "dtype": "dtypes", "kv_cache_dtype": "kv_cache_dtypes",
		"webllm_version": "webllm_versions", "context": "contexts", "threads": "thread_counts", "start": "starts"}[name]
	if !ok {
		return name
	}
	return list
}

// canonical is the name here of a field that other tools call otherwise.
func canonical(name string) string {
	ours, ok := map[string]string{"model_id": "model", "max_model_len": "context", "concurrencies": "concurrency"}[name]
	if !ok {
		return name
	}
	return ours
}

// axisOf is the same for all names of an axis.
func axisOf(name string) string { return listOf(canonical(name)) }

// dtype is a type's name here, of one of those that other tools have. That which an engine chooses is empty.
func dtype(text string) string {
	switch strings.ToLower(text) {
	case "float32", "float", "fp32":
		return "f32"
	case "float16", "half", "fp16":
		return "f16"
	case "bfloat16":
		return "bf16"
	case "auto":
		return ""
	}
	return text
}

func dtypes() []string { return []string{"f32", "f16", "bf16"} }

// kvDTypes are those of a GGUF's formats that caches have, and those that other tools name; engines have not all of
// them.
func kvDTypes() []string {
	return []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8", "fp8_e4m3",
		"fp8_e5m2"}
}

func starts() []string { return []string{record.ColdStart, record.WarmStart} }
