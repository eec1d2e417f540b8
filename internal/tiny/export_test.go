package tiny

// What tests must know of the model's inside.
const (
	VocabSize = vocabSize
	Specials  = specials
)

var Weights = weights
