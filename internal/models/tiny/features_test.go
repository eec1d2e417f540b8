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

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
)

const answer = 32 // tokens

// Repetitive or rounding-dependent texts could not distinguish engines.
func TestFeaturesLeadAndVary(t *testing.T) {
	for _, feature := range tinytest.Features() {
		t.Run(feature.Name, func(t *testing.T) {
			t.Parallel()
			distinct := 20
			if feature.Spec.Layers > 8 { // it repeats itself where rounding does not grow too much from layer to layer
				distinct = 8
			}
			for _, a := range tinytest.Answers(t, tinytest.Random(t, feature.Spec), feature.Prompts(), answer) {
				if a.Least() < 0.02 || a.Distinct() < distinct {
					t.Errorf("%s: least margin %.4f, %d distinct tokens", a.Name, a.Least(), a.Distinct())
				}
			}
		})
	}
}

// Without a feature, the text is different, so that tests notice engines that ignore it.
func TestFeaturesMatter(t *testing.T) {
	t.Parallel()
	longest := tinytest.FeaturePrompts()[len(tinytest.FeaturePrompts())-1:]
	for _, feature := range tinytest.Features() {
		with := feature.Spec
		for name, change := range map[string]func(*tiny.Spec){
			"biases":        func(s *tiny.Spec) { s.Bias = false },
			"scaling":       func(s *tiny.Spec) { s.RopeScaling = "" },
			"window":        func(s *tiny.Spec) { s.Window, s.LocalBase = 0, 0 },
			"base":          func(s *tiny.Spec) { s.RopeBase = 0 },
			"local base":    func(s *tiny.Spec) { s.LocalBase = 0 },
			"attention cap": func(s *tiny.Spec) { s.AttentionCap = 0 },
			"rotary size":   func(s *tiny.Spec) { s.RotaryDim = 0 },
		} {
			without := with
			if change(&without); without == with {
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

func TestRandomModelsAreTheSameEachTime(t *testing.T) {
	var a, b, c bytes.Buffer
	for out, seed := range map[*bytes.Buffer]uint64{&a: 1, &b: 1, &c: 2} {
		check.Err(t, tiny.WriteRandom(out, tiny.Spec{Vocab: 600, Tokenizer: tiny.SentencePiece, Seed: seed}))
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || bytes.Equal(a.Bytes(), c.Bytes()) {
		t.Error("the bytes do not depend only on shape and seed")
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
		"a phi3 of 4 heads of 64 needs a hidden size of 256":  {Architecture: gguf.Phi3, Heads: 4, HeadDim: 64},
		"a llama has neither longrope nor a rotary size":      {RotaryDim: 16},
		"rotary-dim is 34":                                    {Architecture: gguf.Phi3, RotaryDim: 34},
		"a gemma3 has no such cap":                            {Architecture: gguf.Gemma3, AttentionCap: 5},
		"only a gemma3 with a window has a local base":        {Architecture: gguf.Gemma3, LocalBase: 5},
		"a qwen2 has no factors for single frequencies":       {Architecture: gguf.Qwen2, RopeScaling: tiny.Llama3},
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		err := tiny.WriteRandomFile(t.Context(), path, s)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was written", says)
		}
	}
}
