package plan

import (
	"slices"
	"strings"

	"llmparity/internal/record"
)

// listOf is the list that a field of one value is one of; of any other name it is that name.
func listOf(name string) string {
	switch name {
	case "model":
		return "models"
	case "engine":
		return "engines"
	case "prompt":
		return "prompts"
	case "input_length":
		return "input_lengths"
	case "output_length", "max_tokens":
		return "output_lengths"
	case "batch_size":
		return "batch_sizes"
	case "dtype":
		return "dtypes"
	case "kv_cache_dtype":
		return "kv_cache_dtypes"
	case "webllm_version":
		return "webllm_versions"
	case "context":
		return "contexts"
	case "threads":
		return "thread_counts"
	case "start":
		return "starts"
	}
	return name
}

// canonical is the name here of a field that other tools call otherwise.
func canonical(name string) string {
	switch name {
	case "model_id":
		return "model"
	case "max_model_len":
		return "context"
	case "concurrencies":
		return "concurrency"
	}
	return name
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

// kvDTypes are those of llama.cpp and those that other tools name; engines have not all of them.
func kvDTypes() []string { return append(CacheTypes(), "fp8", "fp8_e4m3", "fp8_e5m2") }

func starts() []string { return []string{record.ColdStart, record.WarmStart} }

func knownDType(a axis, text string) error {
	known := dtypes()
	if a == ofKVDType {
		known = kvDTypes()
	}
	if text == "" || slices.Contains(known, text) {
		return nil
	}
	return unknown(text, known)
}

func knownStart(text string) error {
	if slices.Contains(starts(), text) {
		return nil
	}
	return unknown(text, starts())
}
