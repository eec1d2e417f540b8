package compare

import (
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// uncounted tells that the rows of some request are pieces of text, and not a token each.
func uncounted(spec record.Cell, attempts []*record.Attempt) bool {
	for _, a := range attempts {
		for _, r := range a.Measured() {
			if spec.Pieces && len(r.Tokens) > 0 && r.Generated != len(r.Tokens) {
				return true
			}
		}
	}
	return false
}

// betweenTokens says what a figure of the times between tokens is of: of an engine that reports pieces of text, of
// those.
func betweenTokens(f *evidence.Figure, spec record.Cell, attempts []*record.Attempt) {
	each := "the time between a token and the one before it"
	if spec.Pieces {
		each += ", tokens as the engine counts them with every chunk"
	}
	if uncounted(spec, attempts) {
		f.Title = strings.Replace(f.Title, "inter-token latency", "between pieces", 1)
		each = "the time between a piece of text and the one before it; a piece may be several tokens, and how many is not known"
	}
	f.How += each + "; those that came at one time, in one chunk, share the time since the chunk before alike (time / their " +
		"number), and what came with the first chunk is left out"
}

// BetweenPieces tells that the cell's latencies are between pieces of text, which are not a token each.
func (c *Cell) BetweenPieces() bool { return c.betweenPieces }
