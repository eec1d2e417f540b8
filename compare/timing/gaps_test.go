package timing

import (
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/compare/stats"
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

func TestNearestRank(t *testing.T) {
	var many []float64
	for i := range 200 {
		many = append(many, float64(200-i))
	}
	if got := stats.NearestRank(many, 0.99); got != 198 {
		t.Errorf("of 200: %g", got)
	}
	if got := stats.NearestRank([]float64{3, 9, 4}, 0.99); got != 9 {
		t.Errorf("of three: %g", got)
	}
	if got := stats.NearestRank(nil, 0.99); !math.IsNaN(got) {
		t.Errorf("of none: %g", got)
	}
}

// What is called a token is one: rows that are pieces of text are called that.
func TestGapsAreNamedForWhatTheyAreBetween(t *testing.T) {
	of := func(pieces bool, r *record.Request) []evidence.Figure {
		spec := record.Cell{Pieces: pieces}
		all := evidence.Summarised(Figures(spec, []*record.Attempt{{ID: 1, Requests: []*record.Request{r}}}))
		return slices.DeleteFunc(
			all,
			func(f evidence.Figure) bool { return f.Name != figure.ITL50 && f.Name != figure.ITL99 },
		)
	}
	for name, c := range map[string]struct {
		pieces bool
		r      *record.Request
		title  string
	}{
		"exact":                 {false, at(0, 5, 7, 10), "inter-token latency"},
		"counted by the chunk":  {true, at(3, 5, 7, 7), "inter-token latency"},
		"more than the pieces":  {true, at(30, 5, 7, 10), "between pieces"},
		"counted by the server": {true, at(0, 5, 7, 10), "between pieces"},
	} {
		f := of(c.pieces, c.r)
		if f[0].Title != c.title+", p50" || f[1].Title != c.title+", p99" || !f[0].Known() ||
			f[1].Center() < f[0].Center() {
			t.Errorf("%s: %+v", name, f)
		}
		if strings.Contains(f[0].How, "of an unknown number of tokens") != (c.title == "between pieces") {
			t.Errorf("%s: %s", name, f[0].How)
		}
	}
	if f := of(false, at(0, 5, 5))[0]; f.Known() || f.Absent == "" {
		t.Errorf("at once: %+v", f)
	}
}
