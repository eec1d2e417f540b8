package nearest

import (
	"fmt"
	"slices"
	"testing"
)

func ExampleOf() {
	fmt.Println(Of("lamacpp", []string{"webllm", "llamacpp"}, 1))
	fmt.Println(Of("smollm2-135", []string{"phi-2", "SmolLM2-1.7B-q4f16_1", "SmolLM2-135M-Instruct-q0f32",
		"SmolLM2-135M-Instruct-q0f16"}, 2))
	// Output:
	// [llamacpp]
	// [SmolLM2-135M-Instruct-q0f16 SmolLM2-135M-Instruct-q0f32]
}

func TestOfFewNames(t *testing.T) {
	if got := Of("x", nil, 3); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := Of("b", []string{"a", "B"}, 3); !slices.Equal(got, []string{"B", "a"}) {
		t.Errorf("%v", got)
	}
}

func TestQuestion(t *testing.T) {
	names := []string{"max_tokens", "models", "run"}
	for name, want := range map[string]string{"max_token": `did you mean "max_tokens"?`, "rnu": `did you mean "run"?`,
		"tokens": `did you mean "max_tokens"?`, "xyzzy": "", "n": ""} {
		if got := Question(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := Similar("foo", []string{"webllm", "llamacpp", "ollama"}); got != "" {
		t.Errorf("foo is not similar to %s", got)
	}
	if got := Question("x", nil); got != "" {
		t.Error(got)
	}
}
