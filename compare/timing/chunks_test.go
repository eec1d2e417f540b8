package timing

import (
	"math"
	"testing"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// A server that makes 100 tokens a second and sends eight of them at a time: those of the first piece were made before
// it came.
func TestDecodeOfPiecesOfSeveralTokens(t *testing.T) {
	of := func(pieces, counted, generated int) *record.Request {
		r := &record.Request{Generated: generated, Spans: []record.NamedSpan{{Name: record.Decode}}}
		for p := range pieces {
			for range counted {
				r.Tokens = append(r.Tokens, record.TokenRow{Index: len(r.Tokens), ID: record.NoID, NS: int64(p) * 80e6})
			}
		}
		return r
	}
	for name, c := range map[string]struct {
		request *record.Request
		want    float64
	}{
		"counted with each piece": {of(4, 8, 32), 100},
		"one piece":               {of(1, 8, 8), math.NaN()},
		"one by one":              {of(9, 1, 9), 12.5},
		"nearly one by one":       {of(10, 1, 11), 13.75},
		"not counted":             {of(4, 1, 32), math.NaN()},
	} {
		if got := figure.DecodeRate(c.request); math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g tokens/s, want %g", name, got, c.want)
		}
	}
}
