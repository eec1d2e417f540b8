package tinytest

import (
	"cmp"
	"maps"
	"slices"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

// Feature is something that engines can get wrong, with a small random model that has it.
type Feature struct {
	Name string
	Spec tiny.Spec
	// LlamaCppDiffers: llama.cpp ignores the sliding window of a llama.
	LlamaCppDiffers bool
	chat            string
}

// Prompts are the prompts for the model: FeaturePrompts, and one with its special tokens.
func (f Feature) Prompts() []Prompt {
	if f.chat == "" {
		return FeaturePrompts()
	}
	return append(FeaturePrompts(), Prompt{"chat", f.chat})
}

// Features returns the models on which engines are compared. Together they cover everything supported. Their seeds make
// the best logit lead by at least 0.02 on FeaturePrompts, with varied text.
func Features() []Feature {
	return []Feature{
		{Name: "a head for each key-value head",
			Spec: tiny.Spec{Heads: 4, KVHeads: 4, HeadDim: 32, Seed: 7}},
		{Name: "two heads for each, tied",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Tied: true, Seed: 7}},
		{Name: "four heads for each, three layers",
			Spec: tiny.Spec{Layers: 3, Heads: 4, KVHeads: 1, HeadDim: 32, Seed: 8}},
		{Name: "eight heads for each, heads of 64, wider than the hidden state",
			Spec: tiny.Spec{Heads: 8, KVHeads: 1, HeadDim: 64, Seed: 3}},
		{Name: "heads of 80",
			Spec: tiny.Spec{Hidden: 320, Heads: 4, KVHeads: 2, HeadDim: 80, Seed: 4}},
		{Name: "heads of 96, narrower than the hidden state",
			Spec: tiny.Spec{Hidden: 256, Heads: 2, KVHeads: 1, HeadDim: 96, Seed: 2}},
		{Name: "heads of 128, Llama 3's scaling and tokenizer",
			Spec: tiny.Spec{Hidden: 256, Heads: 2, KVHeads: 1, HeadDim: 128, RopeBase: 500000, RopeScaling: tiny.Llama3,
				RopeContext: 64,
				Tokenizer:   gguf.PreLlama3, Seed: 1}},
		{Name: "biases",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Bias: true, Tokenizer: gguf.PreSmolLM, Seed: 7}},
		{Name: "qwen2",
			Spec: tiny.Spec{Architecture: gguf.Qwen2, Heads: 4, KVHeads: 2, HeadDim: 32, Tied: true, RopeBase: 1e6,
				Seed: 8}},
		{Name: "qwen2 with a head of its own and linear scaling",
			Spec: tiny.Spec{Architecture: gguf.Qwen2, Hidden: 256, Heads: 4, KVHeads: 4, HeadDim: 64,
				RopeScaling: tiny.Linear,
				RopeFactor:  4, Seed: 6}},
		{Name: "linear scaling",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, RopeScaling: tiny.Linear, RopeFactor: 2.5, Seed: 8}},
		{Name: "SentencePiece, a large vocabulary",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Vocab: 2000, Tokenizer: tiny.SentencePiece, Seed: 4}},
		{Name: "a sliding window",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Window: 24, Seed: 4}, LlamaCppDiffers: true},
		{Name: "fused queries, keys and values",
			Spec: tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Bias: true, Fused: true, Seed: 40}},
		{Name: "qwen3",
			Spec: tiny.Spec{Architecture: gguf.Qwen3, Heads: 4, KVHeads: 2, HeadDim: 64, Tied: true,
				RopeBase: 1e6, Seed: 8}},
		{Name: "gemma2",
			Spec: tiny.Spec{Architecture: gguf.Gemma2, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 48, Window: 24,
				AttentionCap: 5, OutputCap: 100, Seed: 17}},
		{Name: "gemma2 of 46 layers, whose scores have another scale",
			Spec: tiny.Spec{Architecture: gguf.Gemma2, Layers: 46, Hidden: 64, Heads: 2, KVHeads: 1, HeadDim: 64,
				FFN: 64, AttentionCap: 3, OutputCap: 200, Seed: 21}},
		{Name: "gemma3, two bases and linear scaling",
			Spec: tiny.Spec{Architecture: gguf.Gemma3, Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 48, Window: 24,
				OutputCap: 100, RopeBase: 1e6, LocalBase: 5000, RopeScaling: tiny.Linear, RopeFactor: 8, Seed: 15}},
		{Name: "gemma3 without a window",
			Spec: tiny.Spec{Architecture: gguf.Gemma3, Heads: 4, KVHeads: 1, HeadDim: 32, Tied: true,
				RopeBase: 1e6, Seed: 27}},
		{Name: "phi3",
			Spec: tiny.Spec{Architecture: gguf.Phi3, Heads: 4, HeadDim: 32, Seed: 33},
			chat: "<|user|>\n What is the best of three clocks?<|end|>\n<|assistant|> \n"},
		{Name: "phi3 within its original context of 512",
			Spec: tiny.Spec{Architecture: gguf.Phi3, Heads: 4, KVHeads: 2, HeadDim: 32, RopeScaling: tiny.Long,
				RopeContext: 512, RopeFactor: 16, Seed: 7}},
		{Name: "phi3 beyond its original context, rotated in part",
			Spec: tiny.Spec{Architecture: gguf.Phi3, Heads: 4, KVHeads: 2, HeadDim: 32, RotaryDim: 24,
				RopeScaling: tiny.Long, RopeContext: 64, RopeFactor: 16, Tied: true, Seed: 6}},
	}
}

// AsMLC changes a package's mlc-chat-config.json to what MLC's tools write for a phi3 with LongRoPE, or a gemma3.
func (f Feature) AsMLC(config map[string]any) {
	own := config["model_config"].(map[string]any)
	own["position_embedding_base"] = own["rope_theta"]
	s := f.Spec
	for _, ours := range []string{"rope_theta", "rope_factors", "rope_attention_factor", "rope_local_theta",
		"rotary_dim", "local_layers", "qk_norm", "post_norms", "gelu", "embedding_scale", "dtype"} {
		delete(own, ours)
	}
	if s.Architecture == gguf.Phi3 {
		own["rope_scaling"] = map[string]any{"type": "longrope", "rope_type": "longrope",
			"long_factor": s.LongFactors(s.RopeFactor), "short_factor": s.LongFactors(1.5)}
		own["original_max_position_embeddings"] = s.RopeContext
		own["max_position_embeddings"] = float64(s.RopeContext) * s.RopeFactor
		own["partial_rotary_factor"] = float64(cmp.Or(s.RotaryDim, s.HeadDim)) / float64(s.HeadDim)
		return
	}
	own["query_pre_attn_scalar"] = own["head_dim"]
	own["kwargs"] = map[string]any{"rope_local_base_freq": s.LocalBase, "model_type": "gemma3_text",
		"final_logit_softcapping": s.OutputCap}
	delete(own, "final_logit_softcapping")
	own["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": s.RopeFactor}
	config["model_type"] = "gemma3_text"
	config["model_config"] = map[string]any{"text_config": own, "vocab_size": own["vocab_size"],
		"context_window_size": own["context_window_size"], "kwargs": map[string]any{}}
}

// FeaturePrompts are ordinary prompts. The last one is longer than the window of the model that has one, and than a
// prefill chunk of 64 tokens.
func FeaturePrompts() []Prompt {
	const sentence = "The third clock had stopped, and nobody asked what time it was."
	const question = "How long does it take to walk from the house to the station?"
	return []Prompt{
		{"one character", "A"},
		{"question", question},
		{"code", "for i := 0; i < 10; i++ {\n\tif x[i] > 100 {\n\t\tprint(\"value\", i)\n\t}\n}\n"},
		{"plain sentence", sentence},
		{"longer than a window and a chunk of 64", sentence + " " + question +
			" I'm sure they've said we'll see, but it isn't what he'd do; don't you agree it's Tom's?"},
	}
}

// Types returns models whose matrices have each type of which WebLLM's packages keep the bits, and mixtures of them.
func Types() (list []Feature) {
	base := tiny.Spec{Hidden: 256, Heads: 4, KVHeads: 2, HeadDim: 64}
	seeds := map[string]uint64{"Q4_0": 2, "Q4_1": 2, "Q5_0": 1, "Q5_1": 2, "Q8_0": 1, "Q4_K": 2, "Q5_K": 1, "Q6_K": 3}
	for _, name := range slices.Sorted(maps.Keys(seeds)) {
		spec := base
		spec.Type, spec.Seed = name, seeds[name]
		list = append(list, Feature{Name: name, Spec: spec})
	}
	for _, name := range []string{"Q4_K", "Q5_K", "Q6_K"} {
		spec := tiny.Spec{Layers: 1, Hidden: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, Type: name, Seed: 3}
		list = append(list, Feature{Name: name + ", 2048 wide", Spec: spec})
	}
	for _, pair := range [][2]string{{"Q4_0", "Q6_K"}, {"Q4_K", "Q6_K"}, {"Q5_0", "Q8_0"}} {
		spec := base
		spec.Type, spec.SecondType, spec.Seed, spec.Tied = pair[0], pair[1], 2, true
		list = append(list, Feature{Name: pair[0] + " and " + pair[1], Spec: spec})
	}
	return list
}
