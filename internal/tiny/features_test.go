package tiny_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

const answer = 32 // tokens

// Texts that run in circles, or hang on rounding, would tell nothing of engines.
func TestFeaturesLeadAndVary(t *testing.T) {
	for _, feature := range tinytest.Features() {
		t.Run(feature.Name, func(t *testing.T) {
			t.Parallel()
			for _, a := range tinytest.Answers(t, tinytest.Random(t, feature.Spec), tinytest.FeaturePrompts(), answer) {
				if a.Least() < 0.02 || a.Distinct() < 20 {
					t.Errorf("%s: least margin %.4f, %d distinct tokens", a.Name, a.Least(), a.Distinct())
				}
			}
		})
	}
}

// An engine that leaves a feature out must be seen to: the text is another one without it.
func TestFeaturesMatter(t *testing.T) {
	t.Parallel()
	longest := tinytest.FeaturePrompts()[len(tinytest.FeaturePrompts())-1:]
	for _, feature := range tinytest.Features() {
		with := feature.Spec
		for name, without := range map[string]tiny.Spec{
			"biases":  func(s tiny.Spec) tiny.Spec { s.Bias = false; return s }(with),
			"scaling": func(s tiny.Spec) tiny.Spec { s.RopeScaling = ""; return s }(with),
			"window":  func(s tiny.Spec) tiny.Spec { s.Window = 0; return s }(with),
			"base":    func(s tiny.Spec) tiny.Spec { s.RopeBase = 0; return s }(with),
		} {
			if without == with {
				continue
			}
			a := tinytest.Answers(t, tinytest.Random(t, with), longest, answer)
			b := tinytest.Answers(t, tinytest.Random(t, without), longest, answer)
			if slices.Equal(a[0].Out, b[0].Out) {
				t.Errorf("%s: the text is the same without its %s", feature.Name, name)
			}
		}
	}
}

func TestFeaturesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, feature := range tinytest.Features() {
		s, err := feature.Spec.Resolved()
		if err != nil {
			t.Fatalf("%s: %v", feature.Name, err)
		}
		a, err := tinytest.Random(t, s).Architecture()
		if err != nil {
			t.Fatalf("%s: %v", feature.Name, err)
		}
		seen[a.Name], seen[s.Tokenizer] = true, true
		seen[map[bool]string{true: "tied", false: "separate"}[a.Tied]] = true
		seen["share "+string(rune('0'+a.HeadCount/a.HeadCountKV))] = true
		seen["dim "+map[int]string{32: "32", 64: "64", 80: "80", 96: "96", 128: "128"}[a.HeadDim]] = true
		if a.AttentionBias {
			seen["bias in "+a.Name] = true
		}
		if len(a.RopeFactors) > 0 {
			seen[s.RopeScaling+" in "+a.Name] = true
			seen["scaling to one factor"] = seen["scaling to one factor"] ||
				slices.Min(a.RopeFactors) == slices.Max(a.RopeFactors)
			seen["scaling to several"] = seen["scaling to several"] || slices.Min(a.RopeFactors) == 1 &&
				slices.Max(a.RopeFactors) > 1
		}
		if a.SlidingWindow > 0 {
			seen["window"] = true
		}
		if a.HeadCount*a.HeadDim != a.EmbeddingLength {
			seen["key_length"] = true
		}
	}
	for _, want := range []string{"llama", "qwen2", "tied", "separate", "share 1", "share 2", "share 4", "share 8",
		"dim 32",
		"dim 64", "dim 80", "dim 96", "dim 128", "bias in llama", "bias in qwen2", "llama3 in llama", "linear in llama",
		"linear in qwen2", "scaling to one factor",
		"scaling to several", "window", "key_length", "gpt-2", "smollm", "llama-bpe", "qwen2", tiny.SentencePiece} {
		if !seen[want] {
			t.Errorf("no feature has %s", want)
		}
	}
}

func TestRandomModelsAreTheSameEachTime(t *testing.T) {
	var a, b, c bytes.Buffer
	for out, seed := range map[*bytes.Buffer]uint64{&a: 1, &b: 1, &c: 2} {
		if err := tiny.WriteRandom(out, tiny.Spec{Vocab: 600, Tokenizer: tiny.SentencePiece, Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || bytes.Equal(a.Bytes(), c.Bytes()) {
		t.Error("the bytes don't follow from the shape and the seed alone")
	}
}

func TestInterruptedWriteLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := tiny.WriteRandomFile(ctx, filepath.Join(dir, "model.gguf"), tiny.Spec{}); !errors.Is(
		err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImpossibleShapes(t *testing.T) {
	for says, s := range map[string]tiny.Spec{
		"layers is -1": {Layers: -1}, "heads is 2000": {Heads: 2000},
		"5 heads are not a multiple of 2": {Hidden: 160, Heads: 5, KVHeads: 2},
		"head-dim is 33":                  {HeadDim: 33}, "vocab is 100": {Vocab: 100},
		`architecture "bert"`: {Architecture: "bert"},
		`tokenizer "tekken"`:  {Tokenizer: "tekken"}, `rope scaling "yarn"`: {RopeScaling: "yarn"},
		"rope-factor is -1": {RopeScaling: tiny.Linear, RopeFactor: -1},
		"rope-base is 0.5":  {RopeBase: 0.5},
		"a qwen2 of 4 heads of 64 needs a hidden size of 256": {Architecture: gguf.Qwen2, Heads: 4, HeadDim: 64},
		"a qwen2 cannot have a window":                        {Architecture: gguf.Qwen2, Window: 8},
		"a qwen2 has no factors for single frequencies":       {Architecture: gguf.Qwen2, RopeScaling: tiny.Llama3},
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		err := tiny.WriteRandomFile(t.Context(), path, s)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file is there", says)
		}
	}
}
