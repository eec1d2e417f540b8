package plan_test

import (
	"maps"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

// Sections are read, and written in the same way.
func TestSectionsAreRead(t *testing.T) {
	want := map[string]engine.Section{
		"llamacpp": {"batch_threads": 2, "batch": 256, "ubatch": 64, "cache_type_k": "q8_0", "cache_type_v": "f16",
			"flash_attention": "auto", "mmap": "off", "gpu_layers": 3},
		"ollama": {"url": "http://127.0.0.1:11434", "keep_alive": "10m"},
		"openai": {"url": "http://127.0.0.1:8080/v1", "model": "mouse", "api": "chat", "key_env": "KEY"},
		"webllm": {"adapter": "swiftshader", "kernels": "gpu", "sort": "full"},
	}
	p := parse(t, head+body+"llamacpp:\n  batch_threads: 2\n  batch: 256\n  ubatch: 64\n  cache_type_k: q8_0\n  cache_type_v: f16\n"+
		"  flash_attention: auto\n  mmap: off\n  gpu_layers: 3\nollama: {url: http://127.0.0.1:11434, keep_alive: 10m, gpu: false}\n"+
		"openai: {url: http://127.0.0.1:8080/v1, model: mouse, api: chat, key_env: KEY}\n"+
		"adapter: swiftshader\nkernels: gpu\nsort: full\n")
	text, err := p.YAML()
	check.Err(t, err)
	for _, p := range []plan.Plan{p, parse(t, string(text))} {
		if !maps.EqualFunc(p.Sections, want, maps.Equal) {
			t.Errorf("%+v, want %+v", p.Sections, want)
		}
	}
}

func TestSectionsAreRefused(t *testing.T) {
	for section, want := range map[string]string{
		"llamacpp:\n  batch: -1":                      "p:7: llamacpp.batch: -1 is negative; use a positive number, or 0: llama.cpp's default",
		"llamacpp:\n  gpu_layers: -2":                 "p:7: llamacpp.gpu_layers: -2",
		"llamacpp:\n  cache_type_k: f99":              `p:7: llamacpp.cache_type_k: unknown value "f99"; use f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl`,
		"llamacpp:\n  flash_attention: yes":           `p:7: llamacpp.flash_attention: unknown value "yes"; use off, on or auto`,
		"llamacpp:\n  mmap: sometimes":                `p:7: llamacpp.mmap: unknown value "sometimes"; use on or off`,
		"llamacpp:\n  cache_type_v: q8_0":             "p:7: llamacpp.cache_type_v: q8_0 needs flash attention",
		"llamacpp:\n  threads: 1":                     `p:7: unknown field "llamacpp.threads"; did you mean "batch_threads"?`,
		"ollama:\n  kv_type: q8_0\n  gpu: tru":        `p:8: ollama.gpu: must be true or false, not "tru"`,
		"ollama:\n  keep_alive: 2m59s":                "p:7: ollama.keep_alive: 2m59s is less than the timeout of 3m0s",
		"ollama:\n  keep_alive: \"179\"":              "p:7: ollama.keep_alive: 179 is less",
		"ollama:\n  keep_alive: \"-1\"":               "",
		"ollama:\n  keep_alive: \"180\"":              "",
		"ollama:\n  kv_type: f32":                     `p:7: ollama.kv_type: unknown value "f32"; use f16, q8_0 or q4_0`,
		"ollama:\n  url: http://x\n  kv_type: f16":    "omit one of them",
		"ollama:\n  url: http://x\n  gpu: true":       "omit one of them",
		"ollama:\n  adress: http://x":                 `p:7: unknown field "ollama.adress"; docs/reference/plan.md lists the fields`,
		"openai:\n  api: chat":                        "p:6: openai.url: missing",
		"openai:\n  url: http://x\n  api: chatter":    `p:8: openai.api: unknown value "chatter"; use completions or chat`,
		"openai:\n  url: http://x\n  key: sk-secret":  `p:8: unknown field "openai.key"; did you mean "key_env"?`,
		"adapter: dx12":                               `p:6: adapter: unknown value "dx12"; use auto, gpu, swiftshader or lavapipe`,
		"kernels: gpu\nmodel_lib: lib.wasm":           "p:7: model_lib: names a compiled library",
		"webllm_version: 0.2.86\nwebllm_bundle: x.js": "p:7: webllm_bundle: cannot be combined with webllm_version; remove one",
	} {
		_, err := plan.Parse([]byte(head+body+section+"\n"), "p", kinds.All...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "p:") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
}
