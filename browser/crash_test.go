package browser

import (
	"testing"

	"llmparity/internal/record"
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]record.Class{
		"RangeError: Array buffer allocation failed":                                         record.OOM,
		"RangeError: WebAssembly.Memory(): could not allocate memory":                        record.OOM,
		"GPUOutOfMemoryError":                                                                record.OOM,
		"DeviceLostError: The WebGPU device was lost while loading the model.":               record.DeviceLost,
		"TypeError: Failed to fetch":                                                         record.Download,
		"Error: Tensor-cache record range [852992, 984064) exceeds shard size 853248":        record.Download,
		"RuntimeError: unreachable":                                                          record.Crash,
		"RuntimeError: memory access out of bounds":                                          record.Crash,
		"Error: Cannot find function create_tir_paged_kv_cache":                              record.Other,
		"ContextWindowSizeExceededError: Prompt tokens exceed context window size":           record.Other,
		"CompileError: WebAssembly.instantiate(): expected magic word 00 61 73 6d, found 74": record.Other,
	} {
		if got := classify(text); got != want {
			t.Errorf("%s: class %s, want %s", text, got, want)
		}
	}
}
