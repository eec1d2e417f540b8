package timing

import (
	"slices"
	"testing"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// at makes a request whose tokens came at these times, in ms.
func at(generated int, times ...int64) *record.Request {
	r := &record.Request{Phase: record.Measure, Generated: generated, Spans: []record.NamedSpan{{Name: record.Decode}}}
	for i, t := range times {
		r.Tokens = append(r.Tokens, record.TokenRow{Index: i, ID: record.NoID, NS: t * 1e6})
	}
	return r
}

func TestGapsBetweenTokens(t *testing.T) {
	for name, c := range map[string]struct {
		request *record.Request
		want    []float64
	}{
		"one by one":                {at(0, 5, 7, 10), []float64{2, 3}},
		"the first chunk's":         {at(0, 5, 5, 5, 9), []float64{4}},
		"chunks of several":         {at(0, 5, 5, 9, 9, 9, 9, 12), []float64{1, 1, 1, 1, 3}},
		"all at once":               {at(0, 5, 5, 5), nil},
		"one":                       {at(0, 5), nil},
		"none":                      {at(0), nil},
		"held up on their way here": {&record.Request{Tokens: at(0, 5, 7, 9).Tokens}, nil},
	} {
		if got := figure.Gaps(c.request); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
