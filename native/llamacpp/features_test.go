package llamacpp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

const featureTokens = 32

func featureAnswers(t *testing.T, f tinytest.Feature) []tinytest.Answer {
	t.Helper()
	return tinytest.Answers(t, tinytest.Random(t, f.Spec), f.Prompts(), featureTokens)
}

// says returns the ids of a prompt and of the answer, according to llama-server.
func says(t *testing.T, s *session, prompt string) (in, out []int) {
	t.Helper()
	g, err := generate(t, s, engine.Request{Prompt: prompt, MaxTokens: featureTokens, IgnoreEOS: true})
	check.Err(t, err)
	return g.Usage.PromptIDs, g.IDs()
}

// at is a model with room for all prompts.
func at(path string) models.Model {
	return models.Model{Path: path, Model: record.Model{Context: 1024}}
}

func TestFeaturesInLlamaServer(t *testing.T) {
	for _, feature := range tinytest.Features() {
		t.Run(feature.Name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "model.gguf")
			check.Err(t, tiny.WriteRandomFile(t.Context(), path, feature.Spec))
			all := featureAnswers(t, feature)
			s, _ := loadedSession(t, at(path))
			for _, a := range all {
				in, out := says(t, s, a.Text)
				if !slices.Equal(in, a.In) {
					t.Errorf("%s: the prompt is %v, llama-server has %v", a.Name, a.In, in)
				}
				alike := featureTokens
				if feature.LlamaCppDiffers { // only after the window is full
					alike = min(featureTokens, max(0, feature.Spec.Window-len(a.In)))
				}
				if !slices.Equal(out[:alike], a.Out[:alike]) {
					t.Errorf("%s: got %v, llama-server %v", a.Name, a.Out, out)
				}
				if feature.LlamaCppDiffers && len(a.In) > feature.Spec.Window && slices.Equal(out, a.Out) {
					t.Errorf("%s: llama-server respects the window, contrary to Features and docs", a.Name)
				}
			}
		})
	}
}

// LongRoPE's factors depend on the context that the server is started with.
func TestLongRopeFollowsTheContext(t *testing.T) {
	t.Parallel()
	features := tinytest.Features()
	i := slices.IndexFunc(features, func(f tinytest.Feature) bool { return f.Spec.RopeContext == 512 })
	spec := features[i].Spec
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, spec))
	tokens, reference := tinytest.Oracle(t, tinytest.Random(t, spec))
	text := tinytest.FeaturePrompts()[0].Text
	var answers [][]int
	for _, context := range []int{512, 1024} {
		s, _ := loadedSession(t, models.Model{Path: path, Model: record.Model{Context: context}})
		reference.Context(context)
		want, _, err := reference.Greedy(tokens.Prompt(text), featureTokens)
		if _, out := says(t, s, text); err != nil || !slices.Equal(out, want) {
			t.Errorf("context %d: got %v, llama-server %v: %v", context, want, out, err)
		}
		answers = append(answers, want)
	}
	if slices.Equal(answers[0], answers[1]) {
		t.Error("the context makes no difference")
	}
}

// windowed converts a llama with a sliding window to granite_swa, in which llama.cpp supports one. With attention
// sinks of -1e9 and scales of 1 it computes the same.
func windowed(t *testing.T, s tiny.Spec) string {
	t.Helper()
	const name = "granite_swa"
	f := tinytest.Random(t, s)
	var metadata []gguf.Entry
	for _, e := range f.Metadata {
		if rest, ok := strings.CutPrefix(e.Key, "llama."); ok {
			e.Key = name + "." + rest
		}
		if e.Key == "general.architecture" {
			e.Value = name
		}
		metadata = append(metadata, e)
	}
	weights := f.Unquantised()
	a, err := f.Architecture()
	check.Err(t, err)
	for layer := range a.BlockCount {
		sinks := slices.Repeat([]float32{-1e9}, a.HeadCount)
		weights = append(weights, gguf.Weights{Name: "blk." + string(rune('0'+layer)) + ".attn_sinks.weight",
			Shape: []uint64{uint64(a.HeadCount)}, Values: sinks})
	}
	metadata = append(metadata, gguf.Entry{Key: name + ".logit_scale", Value: float32(1)},
		gguf.Entry{Key: name + ".attention.sliding_window_pattern", Value: slices.Repeat([]bool{true}, a.BlockCount)})
	path := filepath.Join(t.TempDir(), "windowed.gguf")
	out, err := os.Create(path)
	check.Err(t, err)
	defer out.Close()
	check.Err(t, gguf.Write(out, metadata, weights))
	return path
}

func TestSlidingWindowInLlamaServer(t *testing.T) {
	t.Parallel()
	for _, feature := range tinytest.Features() {
		if !feature.LlamaCppDiffers {
			continue
		}
		s, _ := loadedSession(t, at(windowed(t, feature.Spec)))
		for _, a := range featureAnswers(t, feature) {
			if _, out := says(t, s, a.Text); !slices.Equal(out, a.Out) {
				t.Errorf("%s: got %v, llama-server %v", a.Name, a.Out, out)
			}
		}
	}
}
