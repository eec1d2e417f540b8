package plan_test

import (
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

func TestOllamasSection(t *testing.T) {
	for section, want := range map[string]string{
		"ollama:\n  url: http://127.0.0.1:11434\n  keep_alive: 10m\n":       "",
		"ollama:\n  kv_type: q8_0\n  gpu: true\n":                           "",
		"ollama:\n  keep_alive: 2m59s\n":                                    "ollama.keep_alive: 2m59s is less than the timeout of 3m0s",
		"ollama:\n  keep_alive: \"179\"\n":                                  "ollama.keep_alive: 179 is less",
		"ollama:\n  keep_alive: \"-1\"\n":                                   "",
		"ollama:\n  keep_alive: \"180\"\n":                                  "",
		"ollama:\n  kv_type: f32\n":                                         "ollama.kv_type: \"f32\", use f16, q8_0 or q4_0",
		"ollama:\n  url: http://127.0.0.1:11434\n  kv_type: f16\n":          "leave one out",
		"ollama:\n  url: http://127.0.0.1:11434\n  gpu: true\n":             "leave out gpu or url",
		"ollama:\n  adress: http://127.0.0.1:11434\n":                       "unknown field",
		"ollama:\n  keep_alive: 10m\n  url: http://127.0.0.1\n  gpu: false": "",
	} {
		p, err := plan.Parse([]byte(string(plans.Default)+"\n"+section), "p.yaml", kinds.All...)
		switch {
		case want == "" && (err != nil || p.Sections["ollama"] == nil):
			t.Errorf("%q: %v", section, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), " line ")):
			t.Errorf("%q: %v, want %q and its line", section, err, want)
		}
	}
}
