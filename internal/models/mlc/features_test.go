package mlc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
)

// rotated puts the rows of heads, width values each, half a head apart where neighbours are a pair.
func rotated(a gguf.Architecture, in []float32, width int) []float32 {
	if !a.Traits().Interleaved {
		return in
	}
	out := make([]float32, len(in))
	for row := range len(in) / width {
		head, j := row/a.HeadDim*a.HeadDim, row%a.HeadDim
		copy(out[(head+j/2+j%2*a.HeadDim/2)*width:][:width], in[row*width:])
	}
	return out
}

// expected returns the weights of a package by MLC's names, which are spelled out here: {} stands for a layer.
func expected(t *testing.T, f *gguf.File, a gguf.Architecture) map[string][]float32 {
	root, layers, embedding, attention, out, norm, head := "model", "layers", "embed_tokens", "self_attn", "o_proj",
		"input_layernorm", "lm_head"
	switch a.Name {
	case gguf.Gemma3:
		root, head = "language_model.model", "language_model.lm_head"
	case gguf.Phi3:
		root, layers, embedding, attention, out, norm = "transformer", "h", "embd", "mixer", "out_proj", "ln"
	}
	all := map[string][]float32{root + "." + embedding + ".weight": tensor(t, f, "token_embd.weight"),
		root + ".norm.weight": tensor(t, f, "output_norm.weight")}
	if !a.Tied {
		all[head+".weight"] = tensor(t, f, "output.weight")
	}
	for layer := range a.BlockCount {
		part := func(name string) []float32 { return tensor(t, f, fmt.Sprintf("blk.%d.%s", layer, name)) }
		set := func(name string, values ...[]float32) {
			all[fmt.Sprintf("%s.%s.%d.%s", root, layers, layer, name)] = slices.Concat(values...)
		}
		for kind, width := range map[string]int{"weight": a.EmbeddingLength, "bias": 1} {
			if kind == "weight" || a.AttentionBias {
				q, k, v := three(a, part, kind, width)
				q, k = rotated(a, q, width), rotated(a, k, width)
				switch a.Name {
				case gguf.Gemma3:
					set(attention+".q_proj."+kind, q)
					set(attention+".k_proj."+kind, k)
					set(attention+".v_proj."+kind, v)
				case gguf.Qwen2, gguf.Qwen3:
					set(attention+".c_attn."+kind, q, k, v)
				default:
					set(attention+".qkv_proj."+kind, q, k, v)
				}
			}
		}
		set(attention+"."+out+".weight", part("attn_output.weight"))
		set("mlp.down_proj.weight", part("ffn_down.weight"))
		set(norm+".weight", part("attn_norm.weight"))
		if a.Name == gguf.Phi3 {
			set("mlp.gate_up_proj.weight", part("ffn_up.weight"))
		} else {
			set("mlp.gate_up_proj.weight", part("ffn_gate.weight"), part("ffn_up.weight"))
		}
		if a.Name == gguf.Qwen3 || a.Name == gguf.Gemma3 {
			set(attention+".q_norm.weight", part("attn_q_norm.weight"))
			set(attention+".k_norm.weight", part("attn_k_norm.weight"))
		}
		if a.Name == gguf.Gemma2 || a.Name == gguf.Gemma3 {
			set("post_attention_layernorm.weight", part("post_attention_norm.weight"))
			set("pre_feedforward_layernorm.weight", part("ffn_norm.weight"))
			set("post_feedforward_layernorm.weight", part("post_ffw_norm.weight"))
		} else {
			set("post_attention_layernorm.weight", part("ffn_norm.weight"))
		}
	}
	return all
}

// three returns the rows of queries, keys and values, which may be one tensor.
func three(a gguf.Architecture, part func(string) []float32, kind string, width int) (q, k, v []float32) {
	if !a.FusedQKV {
		return part("attn_q." + kind), part("attn_k." + kind), part("attn_v." + kind)
	}
	all, n, kv := part("attn_qkv."+kind), a.HeadCount*a.HeadDim*width, a.HeadCountKV*a.HeadDim*width
	return all[:n], all[n : n+kv], all[n+kv:]
}

func TestPackagesOfEveryFeature(t *testing.T) {
	for _, feature := range tinytest.Features() {
		f, p := packageOf(t, feature.Spec, Options{ContextWindow: 512})
		a, err := f.Architecture()
		check.Err(t, err)
		factors, _ := a.Factors(512)
		shortened := func(rounded, factor float64) bool { return rounded == decimal(factor) }
		if s := p.Shape; s.ModelType != a.Name || s.AttentionBias != a.AttentionBias ||
			!slices.EqualFunc(s.RopeFactors, factors, shortened) ||
			s.SlidingWindowSize != a.SlidingWindow || s.TieWordEmbeddings != a.Tied || s.HeadDim != a.HeadDim ||
			len(s.RopeFactors)%(a.Rotated()/2) != 0 {
			t.Errorf("%s: %+v is made of %+v", feature.Name, s, a)
		}
		warned := slices.ContainsFunc(p.Warnings,
			func(w string) bool { return strings.Contains(w, ".attention.sliding_window") })
		if warned != feature.LlamaCppDiffers {
			t.Errorf("%s: warnings %v", feature.Name, p.Warnings)
		}
		got, _ := weightsOf(t, p.Dir)
		for name, want := range expected(t, f, a) {
			if !slices.Equal(got[name], want) {
				t.Errorf("%s: %s is not what the file holds", feature.Name, name)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s: %s is there", feature.Name, name)
		}
		var c config
		readJSON(t, p.Dir, configName, &c)
		if c.ModelType != a.Name || c.SlidingWindowSize != -1 || c.ContextWindowSize != 512 ||
			!reflect.DeepEqual(c.ModelConfig, p.Shape) {
			t.Errorf("%s: %+v", feature.Name, c)
		}
	}
}

// A window that is no shorter than the package's context is none.
func TestWindowAndContext(t *testing.T) {
	f := tinytest.Random(t, tiny.Spec{Window: 64, Context: 256})
	for context, want := range map[int]int{0: 64, 256: 64, 65: 64, 64: 0, 32: 0} {
		s, err := Shape(f, Options{ContextWindow: context})
		if err != nil || s.SlidingWindowSize != want || (len(Warnings(s)) > 0) != (want > 0) {
			t.Errorf("context %d: window %d, warnings %v, %v", context, s.SlidingWindowSize, Warnings(s), err)
		}
	}
}
