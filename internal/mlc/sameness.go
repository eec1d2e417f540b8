package mlc

// Sameness says how the weights of a package and of its GGUF compare.
type Sameness int

// The kinds of sameness: the same bits; other bits with the same values; rounded.
const (
	BitForBit Sameness = iota
	SameValues
	OtherWeights
)

func (s Sameness) String() string {
	return [...]string{"same weights, bit for bit", "same values", "same model, other weights"}[s]
}
