package tiny

import "llmparity/internal/gguf"

// Feature is something that engines may get wrong, and a small random model that has it.
type Feature struct {
	Name string
	Spec Spec
	// LlamaCppDiffers says that llama.cpp doesn't follow the model: it reads no sliding window in a llama.
	LlamaCppDiffers bool
}

// Features are the models on which engines are held against each other: each thing that is supported is in one of them at
// least. Their seeds are such that on FeaturePrompts the best logit leads by 0.02 at the least, and the text is varied.
func Features() []Feature {
	return []Feature{
		{"a head for each key-value head", Spec{Heads: 4, KVHeads: 4, HeadDim: 32, Seed: 7}, false},
		{"two heads for each, tied", Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Tied: true, Seed: 7}, false},
		{"four heads for each, three layers", Spec{Layers: 3, Heads: 4, KVHeads: 1, HeadDim: 32, Seed: 8}, false},
		{"eight heads for each, heads of 64, wider than the hidden state", Spec{Heads: 8, KVHeads: 1, HeadDim: 64, Seed: 3}, false},
		{"heads of 80", Spec{Hidden: 320, Heads: 4, KVHeads: 2, HeadDim: 80, Seed: 4}, false},
		{"heads of 96, narrower than the hidden state", Spec{Hidden: 256, Heads: 2, KVHeads: 1, HeadDim: 96, Seed: 2}, false},
		{"heads of 128, Llama 3's scaling and tokenizer", Spec{Hidden: 256, Heads: 2, KVHeads: 1, HeadDim: 128, RopeBase: 500000, RopeScaling: Llama3,
			RopeContext: 64, Tokenizer: gguf.PreLlama3, Seed: 1}, false},
		{"biases", Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Bias: true, Tokenizer: gguf.PreSmolLM, Seed: 7}, false},
		{"qwen2", Spec{Architecture: gguf.Qwen2, Heads: 4, KVHeads: 2, HeadDim: 32, Tied: true, RopeBase: 1e6, Seed: 8}, false},
		{"qwen2 with a head of its own and linear scaling", Spec{Architecture: gguf.Qwen2, Hidden: 256, Heads: 4, KVHeads: 4, HeadDim: 64, RopeScaling: Linear,
			RopeFactor: 4, Seed: 6}, false},
		{"linear scaling", Spec{Heads: 4, KVHeads: 2, HeadDim: 32, RopeScaling: Linear, RopeFactor: 2.5, Seed: 8}, false},
		{"SentencePiece, a large vocabulary", Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Vocab: 2000, Tokenizer: SentencePiece, Seed: 4}, false},
		{"a sliding window", Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Window: 24, Seed: 4}, true},
	}
}

// FeaturePrompts are ordinary prompts; the last one is longer than the window of the model that has one, and longer than
// a prefill chunk of 64 tokens.
func FeaturePrompts() []Prompt {
	all := Prompts()
	return []Prompt{all[0], all[2], all[7], all[1], {"longer than a window and a chunk of 64", all[1].Text + " " + all[2].Text + " " + all[3].Text}}
}
