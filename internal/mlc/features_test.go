package mlc

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/gguf"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

// rotated puts the rows of heads, width values each, half a head apart where neighbours are a pair.
func rotated(a gguf.Architecture, in []float32, width int) []float32 {
	if !a.Interleaved() {
		return in
	}
	out := make([]float32, len(in))
	for row := range len(in) / width {
		head, j := row/a.HeadDim*a.HeadDim, row%a.HeadDim
		copy(out[(head+j/2+j%2*a.HeadDim/2)*width:][:width], in[row*width:])
	}
	return out
}

func TestPackagesOfEveryFeature(t *testing.T) {
	for _, feature := range tinytest.Features() {
		path := filepath.Join(t.TempDir(), "model.gguf")
		check.Err(t, tiny.WriteRandomFile(t.Context(), path, feature.Spec))
		f, err := gguf.Open(path)
		check.Err(t, err)
		defer f.Close()
		a, err := f.Architecture()
		check.Err(t, err)
		p, err := Write(t.Context(), path, filepath.Join(t.TempDir(), "package"), Options{ContextWindow: 512})
		if err != nil {
			t.Fatalf("%s: %v", feature.Name, err)
		}
		if s := p.Shape; s.ModelType != a.Name || s.AttentionBias != a.AttentionBias ||
			!slices.Equal(s.RopeFactors, decimals(a.RopeFactors)) ||
			s.SlidingWindowSize != a.SlidingWindow || s.TieWordEmbeddings != a.Tied || s.HeadDim != a.HeadDim ||
			len(s.RopeFactors)%(a.HeadDim/2) != 0 {
			t.Errorf("%s: %+v is made of %+v", feature.Name, s, a)
		}
		warned := slices.ContainsFunc(p.Warnings,
			func(w string) bool { return strings.Contains(w, "llama.attention.sliding_window") })
		if warned != feature.LlamaCppDiffers {
			t.Errorf("%s: warnings %v", feature.Name, p.Warnings)
		}
		got, names := weightsOf(t, p.Dir)
		qkv := "self_attn.qkv_proj"
		if a.Name == gguf.Qwen2 {
			qkv = "self_attn.c_attn"
		}
		for layer := range a.BlockCount {
			for kind, width := range map[string]int{"weight": a.EmbeddingLength, "bias": 1} {
				name := fmt.Sprintf("model.layers.%d.%s.%s", layer, qkv, kind)
				if kind == "bias" && !a.AttentionBias {
					if slices.Contains(names, name) {
						t.Errorf("%s: %s is there", feature.Name, name)
					}
					continue
				}
				part := func(of string) []float32 {
					return tensor(
						t, f, fmt.Sprintf("blk.%d.attn_%s.%s", layer, of, kind))
				}
				want := slices.Concat(rotated(a, part("q"), width), rotated(a, part("k"), width), part("v"))
				if !slices.Equal(got[name], want) {
					t.Errorf("%s: %s is not what the file holds", feature.Name, name)
				}
			}
		}
		if slices.Contains(names, "lm_head.weight") == a.Tied {
			t.Errorf("%s: tied %v, weights %v", feature.Name, a.Tied, names)
		}
		var c config
		readJSON(t, p.Dir, configName, &c)
		if c.ModelType != a.Name || c.SlidingWindowSize != -1 || c.ContextWindowSize != 512 ||
			!reflect.DeepEqual(c.ModelConfig, p.Shape) {
			t.Errorf("%s: %+v", feature.Name, c)
		}
	}
}

func decimals(factors []float64) []float64 {
	var out []float64
	for _, v := range factors {
		out = append(out, decimal(v))
	}
	return out
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
