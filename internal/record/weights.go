package record

// Sameness says how weights compare with those that they were converted from, or whose place they take.
type Sameness string

// How weights compare. A conversion has one of the first three.
const (
	SameBits     Sameness = "same_bits"    // the same numbers and scales
	SameValues   Sameness = "same_values"  // some tensors have another type
	OtherValues  Sameness = "other_values" // some were rounded, or two files differ
	SameCompared Sameness = "compared"     // two files have the same values
	NotCompared  Sameness = "not_compared" // two files could not be compared
)

// Converted lists what a conversion can make of weights, the best first.
func Converted() []Sameness { return []Sameness{SameBits, SameValues, OtherValues} }

// String is the text for people.
func (s Sameness) String() string {
	return map[Sameness]string{
		SameBits:     "same weights, bit for bit",
		SameValues:   "same values",
		OtherValues:  "same model, other weights",
		SameCompared: "same weights, compared value by value",
		NotCompared:  "same model, weights not compared",
	}[s]
}

// Relation is how weights compare, and why.
type Relation struct {
	Code   Sameness `json:"code"`
	Detail string   `json:"detail,omitempty"` // the first value that differs, or why the weights are not compared
}

// String is the text for people.
func (r Relation) String() string {
	if r.Detail == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Detail
}
