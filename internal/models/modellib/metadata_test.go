package modellib_test

import (
	"maps"
	"reflect"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
)

// TestMetadata compares the metadata of a library with sizes counted by hand.
func TestMetadata(t *testing.T) {
	v := modellib.Variant{Kernels: "software", Sort: "full"}
	s := small
	s.VocabSize = 2000 // too many to be sorted in one pass
	s.SlidingWindowSize, s.RopeFactors, s.RopeTheta = 16, []float64{1, 2.5, 0.1}, 500000
	built, err := modellib.Build(t.Context(), realTools(t), s, v, nil)
	check.Err(t, err)
	l, err := mlc.OpenLibrary(built.Path)
	check.Err(t, err)
	if l.Own == nil || l.Own.Variant != v {
		t.Errorf("variant %v, want %v", l.Own, v)
	}
	if l.Own == nil || !reflect.DeepEqual(l.Own.Shape, s) {
		t.Errorf("compiled for %+v, want %+v", l.Own, s)
	}
	if l.Quantization != "q0f32" {
		t.Errorf("quantization %s", l.Quantization)
	}
	const float = 4
	chunk, row, hidden := int64(s.PrefillChunkSize), int64(s.VocabSize*float), int64(s.HiddenSize*float)
	qkv := int64((s.NumAttentionHeads + 2*s.NumKeyValueHeads) * s.HeadDim * float)
	inner, mixed := int64(s.IntermediateSize*float), int64(s.NumAttentionHeads*s.HeadDim*float)
	exact := map[string]int64{
		"embed":                    chunk * hidden,
		"softmax_with_temperature": row + 2*64*float, // a greatest value and a sum for each of 64 groups
		"argsort_probs":            3 * 2 * row,      // what the passes write by turns, and what the last one writes
		"sample_with_top_p":        float,
		"apply_logit_bias_inplace": 0, "apply_penalty_inplace": 0, "apply_bitmask_inplace": 0,
	}
	// At least what a forward step needs at once; at most what it needs if no memory is reused.
	within := map[string][2]int64{
		"decode":  {row + qkv, row + qkv + mixed + 2*hidden + inner},
		"prefill": {row + chunk*qkv, row + chunk*(qkv+mixed+2*hidden+inner)},
	}
	for name, bytes := range maps.All(l.MemoryUsage) {
		want, ok := exact[name]
		if span, forward := within[name]; forward && (bytes < span[0] || bytes > span[1]) || ok && bytes != want {
			t.Errorf("%s takes %d bytes, want %d or within %d", name, bytes, want, span)
		}
		delete(exact, name)
		delete(within, name)
	}
	if len(exact)+len(within) > 0 {
		t.Errorf("nothing is said of %v and %v", exact, within)
	}
}
