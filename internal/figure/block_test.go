package figure

import (
	"math"
	"testing"

	"llmparity/internal/record"
)

// A page's longest block is that of the prefill or of the decode. Zero is known; an engine outside a page has none.
func TestLongestBlock(t *testing.T) {
	block := func(part string, ms int64) record.NamedSpan {
		return record.NamedSpan{Name: record.BlockIn(part), BeginNS: 5, EndNS: 5 + ms*1e6}
	}
	for _, c := range []struct {
		spans []record.NamedSpan
		want  float64
	}{
		{[]record.NamedSpan{block(record.Prefill, 80), block(record.Decode, 30)}, 80},
		{[]record.NamedSpan{block(record.Prefill, 80), block(record.Decode, 300)}, 300},
		{[]record.NamedSpan{block(record.Prefill, 0), block(record.Decode, 0)}, 0},
		{[]record.NamedSpan{{Name: record.Prefill, EndNS: 7e6}}, math.NaN()},
	} {
		got := New(LongestBlock).Request(&record.Request{Spans: c.spans})
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %v, want %v", c.spans, got, c.want)
		}
	}
}
