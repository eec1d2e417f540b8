package dtype

import (
	"strings"
	"testing"
)

func TestNamesWithoutDTypes(t *testing.T) {
	for name, want := range map[string]string{
		"SmolLM2-135M-Instruct-q4f16_1-MLC":               "SmolLM2 135M Instruct",
		"SmolLM2-135M-Instruct.Q4_1":                      "SmolLM2 135M Instruct",
		"HuggingFaceTB/SmolLM2-135M-Instruct":             "SmolLM2 135M Instruct",
		"bartowski/Qwen2.5-0.5B-Instruct-GGUF":            "Qwen2.5 0.5B Instruct",
		"qwen2.5_0.5b-IQ4_XS-f16.gguf":                    "qwen2.5 0.5b",
		"Llama-3.2-1B-4bit":                               "Llama 3.2 1B",
		"Q4_0":                                            "",
		"Smollm2 135M 8k Lc100K Mix1 Ep2":                 "Smollm2 135M 8k Lc100K Mix1 Ep2",
		"TinyLlama-1.1B-Chat-v1.0-q4f32_1-MLC-1k":         "TinyLlama 1.1B Chat v1.0 1k",
		"mistral-7b-f16":                                  "mistral 7b",
		"iq-model":                                        "iq model",
		strings.Repeat("x", 3) + "-bf16-q8_0-Q6_K-mlc/a ": "a",
	} {
		if got := Without(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"q4_k_m": "Q4_K_M", "iq4_xs": "IQ4_XS", "q4f16_1": "q4f16_1",
		"f32": "f32", "q8_0": "Q8_0", "": ""} {
		if got := People(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// Any text is a name.
func FuzzWithout(f *testing.F) {
	f.Add("SmolLM2-135M-Instruct-q4f16_1-MLC")
	f.Add("a/-q4_0-q4_0/ .gguf")
	f.Fuzz(func(t *testing.T, name string) {
		if got := Without(name); strings.ContainsAny(got, "-_/") || len(got) > len(name) {
			t.Errorf("%q: %q", name, got)
		}
	})
}
