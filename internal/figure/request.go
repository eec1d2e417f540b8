package figure

import (
	"fmt"
	"math"
	"slices"

	"llmparity/internal/record"
	"llmparity/internal/stats"
)

const ms = 1e6 // nanoseconds

// BetweenTokens is the gap that inter-token latencies measure.
const BetweenTokens = "time between consecutive tokens of a request"

// Later is what decode counts. If the first event has several tokens, the time that they took is not known, and a rate
// of all tokens but one would be too high.
const (
	Later    = "the number of generated tokens that arrived later than the first"
	LaterHow = "That is all but the first, or all but those of the first event if several arrived in it"
)

// LeftHost is when a request's times begin, unless it was due at another time.
const LeftHost = "was sent"

// OverRequests is the median of a figure over requests, those that have it; NaN where none has.
func OverRequests(of func(*record.Request) float64, requests []*record.Request) float64 {
	var values []float64
	for _, r := range requests {
		if v := of(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return stats.Median(values)
}

// Due is when a request was to be sent: of one that is alone, when it was.
func Due(r *record.Request) int64 {
	if r.Due != 0 {
		return r.Due
	}
	return r.SentNS
}

// Queued is how long a request waited until it was sent, in ms.
func Queued(r *record.Request) float64 { return float64(r.SentNS-Due(r)) / ms }

// TimeToFirst is in ms.
func TimeToFirst(r *record.Request) float64 {
	if len(r.Tokens) == 0 {
		return math.NaN()
	}
	return float64(r.Tokens[0].NS-Due(r)) / ms
}

// EndToEnd is a request's latency in ms.
func EndToEnd(r *record.Request) float64 { return float64(r.ReturnedNS-Due(r)) / ms }

// PerToken is the time for each token behind the first, in ms.
func PerToken(r *record.Request) float64 { return 1e3 / DecodeRate(r) }

// DecodeRate is in tokens/s; NaN if tokens came together or in few pieces, because their times are unknown.
func DecodeRate(r *record.Request) float64 {
	last := len(r.Tokens) - 1
	_, known := r.Span(record.Decode)
	if last < 1 || r.Tokens[last].NS <= r.Tokens[0].NS || Sparse(r) || !known {
		return math.NaN()
	}
	// of a piece of text, its share of the tokens
	later := float64(r.Tokened()) * float64(len(r.Tokens)-together(r)) / float64(len(r.Tokens))
	return later / (float64(r.Tokens[last].NS-r.Tokens[0].NS) / 1e9)
}

// Untimed says why a request of several tokens has no DecodeRate; empty where it has one, or fewer tokens.
func Untimed(r *record.Request) string {
	last := len(r.Tokens) - 1
	switch {
	case Sparse(r):
		return fmt.Sprintf("%d tokens arrived in %d pieces; their times are not known", r.Generated, len(r.Tokens))
	case last < 1 || !math.IsNaN(DecodeRate(r)):
		return ""
	case r.Tokens[last].NS > r.Tokens[0].NS:
		return fmt.Sprintf("the times of the %d tokens are not known: the engine held them back, or reports no decode",
			len(r.Tokens))
	}
	return fmt.Sprintf("the %d tokens arrived at once; their times are not known", len(r.Tokens))
}

// wholePieces is how many pieces of text a token must have come in, at least, for the times of the first and the last
// piece to be those of the first and the last token, nearly.
const wholePieces = 0.9

// Sparse reports whether many tokens came in one piece with others, so that their times are not known.
func Sparse(r *record.Request) bool { return float64(len(r.Tokens)) < wholePieces*float64(r.Generated) }

// together is how many tokens came with the first one, itself among them: those of one piece of text, where the engine
// counts them, have one time, and took no time that could be seen.
func together(r *record.Request) int {
	n := 0
	for n < len(r.Tokens) && r.Tokens[n].NS == r.Tokens[0].NS {
		n++
	}
	return n
}

func prefillRate(r *record.Request) float64 {
	s, ok := r.Span(record.Prefill)
	n := r.Prompted() - max(0, r.CachedTokens)
	if !ok || s.EndNS <= s.BeginNS || n < 1 {
		return math.NaN()
	}
	return float64(n) / (float64(s.EndNS-s.BeginNS) / 1e9)
}

// longestBlock is the longest block of the page in a part of the request, in ms.
func longestBlock(r *record.Request) float64 {
	longest := math.NaN()
	for _, part := range []string{record.Prefill, record.Decode} {
		if s, ok := r.Span(record.BlockIn(part)); ok && !(longest >= float64(s.EndNS-s.BeginNS)/1e6) {
			longest = float64(s.EndNS-s.BeginNS) / 1e6
		}
	}
	return longest
}

// known is a number of tokens; NaN for the number that stands for an unknown one.
func known(n, unknown int) float64 {
	if n == unknown {
		return math.NaN()
	}
	return float64(n)
}

// Gaps are the times between a request's tokens, in ms. Tokens with the same time came in one chunk, and share the time
// since the previous chunk evenly. The first chunk's tokens have no gap: the time before them is the time to the first
// token. Gaps are nil if the record does not have the times at which tokens came.
func Gaps(r *record.Request) []float64 {
	if _, known := r.Span(record.Decode); !known {
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
