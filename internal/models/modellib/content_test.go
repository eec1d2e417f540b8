package modellib_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/modellib"
)

// every lists the shaders of all libraries, without those of sampling. Some have others for queries, keys and values.
var every = []string{
	"attend_cached", "attend_decode", "attend_merge", "attend_new", "attention_out_many", "attention_out_one",
	"down_many", "down_one",
	"embed_tokens", "kv_append", "norm_gate_up_many", "norm_gate_up_one", "norm_logits",
}

// separateNorm matches shaders that begin with a norm on a GPU. On a software adapter, the norm is a separate shader.
var separateNorm = regexp.MustCompile(`^norm_((gate_up|qkv|q|kv)_many)$`)

var (
	fusedQueries  = []string{"norm_qkv_many", "norm_qkv_one", "rotate_split"}
	qwen3Queries  = []string{"norm_qkv_many", "norm_qkv_one", "norm_rotate_many", "norm_rotate_one", "split"}
	gemma3Queries = []string{"norm_q_many", "norm_q_one", "norm_kv_many", "norm_kv_one", "norm_rotate_many",
		"norm_rotate_one", "split", "add_norm_many", "add_norm_one"}
)

// gemma3 makes the shape one with everything that a gemma3 has.
func gemma3(s *modellib.Shape) {
	s.ModelType, s.QKNorm, s.PostNorms, s.GELU, s.EmbeddingScale = "gemma3", true, true, true, 8
	s.FinalLogitSoftcapping, s.SlidingWindowSize, s.LocalLayers, s.RopeLocalTheta = 30, 8, []int{0}, 5000
	s.DType = "float16"
}

// Shaders stay within the limits that every WebGPU adapter grants.
func TestShaders(t *testing.T) {
	gpu := modellib.Variant{Kernels: "gpu", Sort: "full"}
	for name, c := range map[string]struct {
		variant    modellib.Variant
		change     func(*modellib.Shape)
		has, hasnt []string
		shaders    []string
	}{
		"software": {software, func(*modellib.Shape) {},
			[]string{"model.layers.0.self_attn.qkv_proj.weight", `"q0f32"`, `"software"`, `"partial"`},
			[]string{"enable f16", "lm_head", ".bias", "c_attn"}, fusedQueries},
		"gpu, untied": {gpu, func(s *modellib.Shape) { s.TieWordEmbeddings, s.HeadDim = false, 128 },
			[]string{"lm_head.weight", `"gpu"`, `"full"`}, []string{"enable f16", ".bias"}, fusedQueries},
		"qwen2, float16": {software, func(s *modellib.Shape) {
			s.ModelType, s.AttentionBias, s.DType = "qwen2", true,
				"float16"
		},
			[]string{"enable f16", "model.layers.0.self_attn.c_attn.bias", `"q0f16"`}, []string{"qkv_proj", `"q0f32"`},
			fusedQueries},
		"gpu, float16, a window": {gpu, func(s *modellib.Shape) {
			s.DType, s.SlidingWindowSize, s.RopeFactors = "float16", 8, []float64{1, 2, 4}
		}, []string{"enable f16"}, []string{".bias"}, fusedQueries},
		"gpu, qwen3": {gpu, func(s *modellib.Shape) { s.ModelType, s.QKNorm, s.HeadDim = "qwen3", true, 128 },
			[]string{"model.layers.0.self_attn.c_attn.weight", "model.layers.0.self_attn.q_norm.weight"},
			[]string{"qkv_proj"}, qwen3Queries},
		"gpu, gemma3": {gpu, gemma3, []string{"language_model.model.layers.0.self_attn.k_proj.weight",
			"language_model.model.layers.0.post_feedforward_layernorm.weight"}, []string{"qkv_proj"}, gemma3Queries},
		"gemma3": {software, gemma3, []string{"language_model.model.norm.weight"}, []string{"qkv_proj"}, gemma3Queries},
		"gpu, phi3": {gpu, func(s *modellib.Shape) {
			s.ModelType, s.RotaryDim, s.RopeFactors, s.RopeAttentionFactor = "phi3", 4, []float64{1, 2}, 1.2
		}, []string{"transformer.h.0.mixer.out_proj.weight", "transformer.embd.weight"}, []string{"model.layers"},
			fusedQueries},
	} {
		if c.variant == gpu && name != "gpu, untied" && !check.Slow { // each takes ten seconds to compile
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := small
			s.TieWordEmbeddings = true
			c.change(&s)
			lib, err := modellib.Build(t.Context(), realTools(t), s, c.variant, func(step string) { t.Log(step) })
			check.Err(t, err)
			text := check.Read(t, lib.Path)
			for _, want := range c.has {
				if !strings.Contains(string(text), want) {
					t.Errorf("lacks %s", want)
				}
			}
			for _, stray := range c.hasnt {
				if strings.Contains(string(text), stray) {
					t.Errorf("has %s", stray)
				}
			}
			shaders := shadersOf(string(text))
			for _, want := range slices.Concat(every, c.shaders) {
				if c.variant.Kernels == "software" {
					want = separateNorm.ReplaceAllString(want, "$1")
				}
				if shaders[want] == "" {
					t.Errorf("lacks the shader %s; has %v", want, slices.Sorted(maps.Keys(shaders)))
				}
			}
			for kernel, code := range shaders {
				checkShader(t, kernel, code, s, c.variant)
			}
		})
	}
}

// checkShader checks a shader against WebGPU's default limits and the library's variant.
func checkShader(t *testing.T, kernel, code string, s modellib.Shape, v modellib.Variant) {
	t.Helper()
	size := regexp.MustCompile(`@workgroup_size\((\d+), (\d+), (\d+)\)`).FindStringSubmatch(code)
	if size == nil || number(size[1])*number(size[2])*number(size[3]) > 256 {
		t.Errorf("%s: workgroup %q", kernel, size)
	}
	shared := 0
	for _, a := range regexp.MustCompile(
		`var<workgroup> \w+ : array<(vec4|vec2)?<?[fiu]32>?, (\d+)>`).FindAllStringSubmatch(code, -1) {
		shared += 4 * number(a[2]) * map[string]int{"": 1, "vec2": 2, "vec4": 4}[a[1]]
	}
	if got := strings.Count(code, "var<workgroup>"); shared > 16384 || (got > 0) != (shared > 0) {
		t.Errorf("%s: %d bytes of workgroup memory in %d arrays", kernel, shared, got)
	}
	if v.Kernels == "software" && (shared > 0 || strings.Contains(code, "workgroupBarrier")) {
		t.Errorf("%s: threads wait for one another", kernel)
	}
	if strings.Count(code, "var<storage") > 8 {
		t.Errorf("%s: too many storage buffers", kernel)
	}
	if strings.Contains(code, "f16") != strings.Contains(code, "enable f16;") || s.DType == "float32" &&
		strings.Contains(code, "f16") {
		t.Errorf("%s: float16 where there should be none, or not declared", kernel)
	}
	// Sums are float32, whatever the weights are.
	if regexp.MustCompile(`var (local|shared)\w* : array<.*f16`).MatchString(code) {
		t.Errorf("%s: something is summed in float16", kernel)
	}
}

// shadersOf finds the shaders in a library, by the names of their kernels.
func shadersOf(text string) map[string]string {
	const head = "//----------------------------------------\n// Function: "
	found := map[string]string{}
	for _, part := range strings.Split(text, head)[1:] {
		name, code, _ := strings.Cut(part, "_kernel\n")
		code, _, _ = strings.Cut(code, "\x00")
		found[name] = code
	}
	return found
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits, as the expression says
	return n
}
