package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

const llamaCpp = "name: p\nengines: [llamacpp]\nmodel: tiny\nprompts: [the]\nmax_tokens: 4\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 1\ntimeout: 3m\nllamacpp:\n"

func TestLlamaCppSection(t *testing.T) {
	text := llamaCpp + "  batch_threads: 2\n  batch: 256\n  ubatch: 64\n  cache_type_k: q8_0\n  cache_type_v: f16\n  flash_attention: auto\n  mmap: off\n  gpu_layers: 3\n"
	p, err := plan.Parse([]byte(text), "p", kinds.All...)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Section{"batch_threads": 2, "batch": 256, "ubatch": 64, "cache_type_k": "q8_0",
		"cache_type_v":    "f16",
		"flash_attention": "auto", "mmap": "off", "gpu_layers": 3}
	if got := p.Sections["llamacpp"]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	written, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if q, err := plan.Parse(written, "q", kinds.All...); err != nil || !reflect.DeepEqual(p, q) {
		t.Errorf("written and read again: %+v, %v", q, err)
	}
}

func TestLlamaCppSectionIsRefused(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"  batch: -1", "p line 10: llamacpp.batch: -1, use a positive number, or 0: llama.cpp's own"},
		{"  gpu_layers: -2", "p line 10: llamacpp.gpu_layers: -2"},
		{"  cache_type_k: f99", `p line 10: llamacpp.cache_type_k: "f99", use f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl`},
		{"  flash_attention: yes", `p line 10: llamacpp.flash_attention: "yes", use off, on or auto`},
		{"  mmap: sometimes", `p line 10: llamacpp.mmap: "sometimes", use on or off`},
		{"  cache_type_v: q8_0", "p line 10: llamacpp.cache_type_v: q8_0 needs flash attention"},
		{"  threads: 1", "p line 10:"},
	} {
		_, err := plan.Parse([]byte(llamaCpp+c.line+"\n"), "p", kinds.All...)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.line, err, c.want)
		}
	}
}
