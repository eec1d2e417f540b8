package tiny

import "llmparity/internal/models/gguf"

// spec is the tiny model's. Its weights are random, so that every value has a say in every token. Two scales are
// smaller than the usual ones, so that a wrong kernel is noticed and a right one is not accused:
//
//   - attention scores stay below 15. Larger ones would leave a head one position, and no other key would matter;
//   - logits are close: the best one leads by 1 in the median, so a few percent of noise change the text, and the 20 best
//     tokens share the probability, so far less changes their scores.
//
// By chance two logits are closer than what rounding moves them. The seed, and the prompts of tinytest, are chosen so
// that this happens at none of their tokens.
var spec = Spec{
	Name: Name, Architecture: gguf.Llama, Layers: 2, Hidden: 128, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 256,
	Vocab: vocabSize, Context: 1024, RopeBase: 10000, Tokenizer: gguf.PreGPT2, Seed: 7015,
	scales: scales{quiet: usual.quiet, sharp: 1.6, adds: usual.adds, wide: usual.wide, spread: 5},
}

var shape = spec.architecture()

// weights returns all tensors in storage order. Special tokens have zero rows in the head and never win.
func weights() []gguf.Weights {
	sayable := make([]bool, vocabSize)
	for id := range vocabSize - specials {
		sayable[id] = true
	}
	return spec.randomWeights(sayable)
}
