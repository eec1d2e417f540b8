package compare

import (
	"slices"

	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// gaps are the times between a request's tokens, in ms. Tokens of one time came in one chunk: nobody saw when each was
// made, so the time since the chunk before is spread over them alike, a gap for each. The first chunk's tokens have
// none, whatever their number: the time before them is that to the first token. nil where the times are not those at
// which tokens were there.
func gaps(r *record.Request) []float64 {
	if _, told := r.Span(record.Decode); !told {
		return nil
	}
	var out []float64
	before := 0 // where the chunk before begins
	for at := together(r); at < len(r.Tokens); {
		end := at
		for end < len(r.Tokens) && r.Tokens[end].NS == r.Tokens[at].NS {
			end++
		}
		gap := float64(r.Tokens[at].NS-r.Tokens[before].NS) / ms / float64(end-at)
		if gap < 0 {
			return nil // a clock ran backwards: none of its times is to be believed
		}
		out = append(out, slices.Repeat([]float64{gap}, end-at)...)
		before, at = at, end
	}
	return out
}

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

// gapFigures are the latencies between tokens, or what is nearest to that.
func gapFigures(spec record.Cell, attempts []*record.Attempt, inLaunch string) []Figure {
	of, each := "inter-token latency", "the time between a token and the one before it"
	if spec.Pieces {
		each += ", tokens as the engine counts them with every chunk"
	}
	if uncounted(spec, attempts) {
		of, each = "between pieces", "the time between a piece of text and the one before it; a piece may be several tokens, and how many "+
			"is not known"
	}
	each += "; those that came at one time, in one chunk, share the time since the chunk before alike (time / their number), and what came " +
		"with the first chunk is left out"
	p50 := Figure{Name: figure.ITL50, Title: of + ", p50", Unit: "ms",
		Absent: "no request yielded two chunks whose times are known",
		How:    "the median over a request of " + each + inLaunch}
	p99 := Figure{Name: figure.ITL99, Title: of + ", p99", Unit: "ms", Absent: p50.Absent,
		How: "that which 99 % over a request are not above (nearest rank: of fewer than 100 the longest) of " + each +
			inLaunch}
	return []Figure{
		perRequest(attempts, func(r *record.Request) float64 { return stats.Median(gaps(r)) }, p50),
		perRequest(attempts, func(r *record.Request) float64 { return stats.NearestRank(gaps(r), 0.99) }, p99),
	}
}

// BetweenPieces tells that the cell's latencies are between pieces of text, which are not a token each.
func (c *Cell) BetweenPieces() bool { return c.betweenPieces }
